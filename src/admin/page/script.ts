/**
 * Keeps the page fresh without scrolling it: fetches the same page again and replaces `<main>`. It waits while the page
 * is hidden or text is selected, and shows when the bridge does not answer any more: also in title and icon.
 */
export const script = `(() => {
  const everyMs = 5000
  const limitMs = 4000
  const icon = document.querySelector('link[rel=icon]')
  const refresh = async () => {
    if (document.hidden || getSelection()?.isCollapsed === false) return
    try {
      const answer = await fetch(location.href, { signal: AbortSignal.timeout(limitMs), cache: 'no-store' })
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html')
      const main = next.querySelector('main')
      if (!main) throw new Error('not the status page')
      const focused = document.activeElement?.getAttribute('href')
      document.querySelector('main').replaceWith(main)
      if (focused) [...main.querySelectorAll('a')].find((a) => a.getAttribute('href') === focused)?.focus({ preventScroll: true })
      document.title = next.title
      icon.href = next.querySelector('link[rel=icon]').href
      document.documentElement.removeAttribute('data-stale')
    } catch {
      if (document.documentElement.hasAttribute('data-stale')) return
      document.documentElement.setAttribute('data-stale', '')
      document.title = '? ' + document.title.slice(2) + ' (stale)'
      icon.href = icon.dataset.stale
    }
  }
  setInterval(refresh, everyMs)
  document.addEventListener('visibilitychange', refresh)
})()`
