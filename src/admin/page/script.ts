import { versionHeader } from '../../telemetry/version.ts'
import { actScript } from './act-script.ts'
import { listenScript } from './listen-script.ts'
import { navigationScript } from './navigation-script.ts'

/**
 * Keeps the page fresh without scrolling it. The server says when something changed (`/api/v1/events`); then the same page is
 * fetched again, and only what differs is replaced, row by row. Nothing moves under the reader: while the list of alerts is being
 * read, new ones wait behind a button, and ages count on by themselves. It waits while the page is hidden, text is selected, a
 * dialog is open or the reader has paused it, and takes up afterwards what it missed. Unless the reader has paused it, verdict,
 * title and icon follow meanwhile, too. It shows when the bridge does not answer any more: also in title and icon.
 *
 * Buttons (`data-act`, see `buttons.ts`) call the API with the admin token, which is a variable here: in no address, no storage and
 * no cookie, so no other page can use it. Links within the page, and the search, are followed by replacing `<main>`, which keeps it.
 */
export const script = `(() => {
  const fallbackMs = 5000
  const limitMs = 4000
  const silentMs = 40000
  const unseenMs = 30000
  let words = JSON.parse(document.documentElement.dataset.words)
  const figure = (count) => typeof count === 'number' ? count.toLocaleString(document.documentElement.lang) : count
  const fill = (text, ...values) => values.reduce((filled, value) => filled.replace('{}', () => figure(value)), text)
  const icon = document.querySelector('link[rel=icon]')
  const $ = (id) => document.getElementById('act' + id)
  const box = $('')
  const pauseButton = document.getElementById('live-pause')
  const newButton = document.getElementById('live-new')
  const said = document.getElementById('live-said')
  let token
  let busy = false
  let paused = false
  /** By how much the bridge's clock is ahead of the browser's, as of the page that was read last. */
  const skewOf = (root) => Date.parse(root.dataset.now) - Date.now()
  let skewMs = skewOf(document.documentElement)

  // Not the property: of a form that is its field of that name.
  const keyOf = (node) => node.nodeType === 1 ? node.getAttribute('id') || node.dataset?.key || node.getAttribute('aria-labelledby') : undefined
  const morph = (from, to) => {
    for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && name !== 'open') from.removeAttribute(name)
    for (const { name, value } of [...to.attributes]) if (from.getAttribute(name) !== value && name !== 'open') from.setAttribute(name, value)
    const keyed = new Map([...from.children].filter(keyOf).map((each) => [keyOf(each), each]))
    const kept = new Set([...to.children].map(keyOf))
    // What is moved loses the cursor. So what is gone goes first, and the blanks around it.
    for (const [key, each] of keyed) {
      if (kept.has(key)) continue
      if (each.nextSibling?.nodeType === 3) each.nextSibling.remove()
      each.remove()
    }
    let at = from.firstChild
    for (const wanted of [...to.childNodes]) {
      const key = keyOf(wanted)
      const same = at && !keyOf(at) && at.nodeType === wanted.nodeType && at.nodeName === wanted.nodeName ? at : undefined
      const found = key ? keyed.get(key) : same
      if (!found || found.nodeName !== wanted.nodeName) {
        from.insertBefore(wanted, at)
        continue
      }
      if (found === at) at = at.nextSibling
      else from.insertBefore(found, at)
      if (found.nodeType === 1) morph(found, wanted)
      else if (found.data !== wanted.data) found.data = wanted.data
    }
    while (at) {
      const next = at.nextSibling
      at.remove()
      at = next
    }
  }
  const pageOf = (address) => address.split('#')[0]
  /** Of which page the list is: also on the way back, another page has other rows, not new ones. */
  let page = pageOf(location.href)
  /** While the list is being read, its rows stay where they are: those that are there get their news, new ones wait. */
  const holdNew = (main, isSamePage) => {
    const [list, next] = [document.querySelector('ol.alerts'), main.querySelector('ol.alerts')]
    const isRead = isSamePage && list && next && list.getBoundingClientRect().top < -40
    const known = new Set([...(list?.children ?? [])].map(keyOf))
    const fresh = isRead ? [...next.children].filter((each) => !known.has(keyOf(each))).length : 0
    const count = next?.children.length
    if (fresh > 0) {
      const news = new Map([...next.children].map((each) => [keyOf(each), each]))
      next.replaceChildren(...[...list.children].map((each) => news.get(keyOf(each)) ?? each.cloneNode(true)))
    }
    newButton.hidden = fresh === 0
    // Where a page has none that was there, there are more than it has.
    newButton.textContent = fill(words.fresh, fresh < count ? fresh : figure(fresh) + '+')
  }
  /** The browser says nothing of a page that came without being loaded: who hears it is told what the link, Back or the search led to. */
  const placeText = () => {
    const story = document.querySelector('.story h1, .back ~ .verdict .headline')
    if (story) return story.textContent
    const list = document.getElementById('deliveries')?.closest('section')
    if (!list) return ''
    const found = list.querySelector('.empty')?.textContent ?? figure(list.querySelectorAll('.alerts > li').length)
    return list.querySelector('h2').textContent + ': ' + found
  }
  /** A reload of the config may bring another language or another zone: then all that is not of the main part follows. */
  const speakAs = (next) => {
    const { lang, dir, dataset } = next.documentElement
    Object.assign(document.documentElement, { lang, dir })
    document.documentElement.dataset.words = dataset.words
    words = JSON.parse(dataset.words)
    for (const part of ['.stale', '#act']) morph(document.querySelector(part), next.querySelector(part))
    pauseButton.textContent = paused ? words.goOn : words.pause
  }
  const isShown = (address) => pageOf(address) === pageOf(location.href)
  /** False where the answer is not wanted any more, as where the reader has gone elsewhere: then nothing is replaced. */
  const load = async (address, isWanted = isShown, isGlance = false) => {
    const answer = await fetch(address, { signal: AbortSignal.timeout(limitMs), cache: 'no-store' })
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html')
    if (!isWanted(address)) return false
    // A proxy may answer in the place of the bridge, as with a login, and its page may have a main part, too.
    const main = 'now' in next.documentElement.dataset ? next.querySelector('main') : undefined
    if (!main) throw Object.assign(new Error('not the status page'), { isOther: answer.status < 500 })
    const headline = document.querySelector('.headline')?.textContent
    const isElsewhere = !isGlance && pageOf(address) !== page
    if (isGlance) {
      const [verdict, news] = [document.querySelector('.verdict'), main.querySelector('.verdict')]
      const selection = getSelection()
      if (verdict && news && (selection?.isCollapsed !== false || !selection.containsNode(verdict, true))) morph(verdict, news)
    } else {
      whole = isWhole(main)
      if (next.documentElement.dataset.words !== document.documentElement.dataset.words && !box.open) speakAs(next)
      holdNew(main, !isElsewhere)
      page = pageOf(address)
      const { activeElement: focused } = document
      morph(document.querySelector('main'), main)
      // What is moved to another place loses it.
      if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true })
    }
    const now = document.querySelector('.headline')?.textContent
    const news = new Set([isElsewhere && placeText(), headline && now !== headline && now].filter(Boolean))
    if (news.size > 0) said.textContent = [...news].join('. ')
    document.title = next.title
    icon.href = next.querySelector('link[rel=icon]').href
    skewMs = skewOf(next.documentElement)
    document.documentElement.removeAttribute('data-stale')
    return true
  }
  const isStale = () => document.documentElement.hasAttribute('data-stale')
  /** As the page was before. */
  let unstale
  const stale = () => {
    if (isStale()) return
    const [title, shownIcon] = [document.title, icon.href]
    unstale = () => {
      document.documentElement.removeAttribute('data-stale')
      document.title = title
      icon.href = shownIcon
    }
    document.documentElement.setAttribute('data-stale', '')
    document.title = '? ' + document.title.slice(2) + ' ' + words.stale
    icon.href = icon.dataset.stale
  }
  /** How often news were asked for, and which of these the page has. What could not be shown is not forgotten. */
  let asked = 0
  let shown = 0
  const missed = () => {
    asked += 1
    stale()
  }
  /** Whether the bridge could read all of the page: else it is asked again, but not at once. */
  const isWhole = (main) => !main.querySelector('[data-unread]')
  let whole = isWhole(document)
  let loading = false
  /** Nothing is replaced now; also not by an answer that was asked for before. */
  const rests = () => document.hidden || paused || box.open || getSelection()?.isCollapsed === false
  const refresh = async () => {
    asked += 1
    await catchUp()
  }
  /** While the lists rest, verdict, title and icon follow all the same: a tab is looked at most where its page is not. */
  let glanced = 0
  let glancedMs = 0
  const glance = async () => {
    const isDue = document.hidden
      ? performance.now() - glancedMs >= unseenMs
      : glanced !== asked || isStale() || !isHeard()
    if (!isDue) return
    loading = true
    glancedMs = performance.now()
    try {
      const wanted = asked
      if (await load(location.href, isShown, true)) glanced = wanted
    } catch {
      stale()
    } finally {
      loading = false
    }
  }
  /** Where the reader has paused all of it, whether the bridge answers. */
  const askAlive = async () => {
    if (document.hidden || (!isStale() && isHeard())) return
    loading = true
    try {
      const { headers } = await fetch('/healthz', { signal: AbortSignal.timeout(limitMs), cache: 'no-store' })
      if (!headers.has('${versionHeader}')) throw new Error('not the bridge')
      if (isStale()) unstale()
    } catch {
      stale()
    } finally {
      loading = false
    }
  }
  const catchUp = async () => {
    if (loading) return
    if (rests()) return paused ? askAlive() : glance()
    if (whole && shown === asked) return
    loading = true
    try {
      do {
        const wanted = asked
        if (await load(location.href, (address) => isShown(address) && !rests())) shown = wanted
      } while (shown !== asked && !rests())
    } catch {
      stale()
    } finally {
      loading = false
    }
  }
${listenScript}
  // After the first paint, which would otherwise wait for the processor.
  requestAnimationFrame(() => setTimeout(() => {
    document.documentElement.setAttribute('data-painted', '')
    tell()
    listen()
  }))
  document.addEventListener('visibilitychange', () => { listen(); void refresh() })
${navigationScript}
  const spanOf = (ms) => {
    const seconds = Math.round(ms / 1000)
    const parts = [[Math.floor(seconds / 86400), words.units.d], [Math.floor((seconds % 86400) / 3600), words.units.h], [Math.floor((seconds % 3600) / 60), words.units.m], [seconds % 60, words.units.s]]
    const first = parts.findIndex(([count]) => count > 0)
    return parts.slice(first, first + 2).filter(([count]) => count > 0).map(([count, unit]) => figure(count) + unit).join(words.and)
  }
  setInterval(() => {
    if (document.hidden || isStale() || getSelection()?.isCollapsed === false) return
    for (const each of document.querySelectorAll('main time[data-age]')) {
      const seconds = Math.round((Date.parse(each.dateTime) - Date.now() - skewMs) / 1000)
      const text = seconds === 0 ? words.now : fill(seconds < 0 ? words.ago : words.ahead, spanOf(Math.abs(seconds) * 1000))
      if (!Number.isNaN(seconds) && each.textContent !== text) each.textContent = text
    }
  }, 1000)
  pauseButton.addEventListener('click', () => {
    paused = !paused
    pauseButton.setAttribute('aria-pressed', paused)
    pauseButton.textContent = paused ? words.goOn : words.pause
    void refresh()
  })
  /** Also where nothing else is replaced: the new ones were asked for. */
  newButton.addEventListener('click', async () => {
    document.getElementById('deliveries')?.scrollIntoView()
    try {
      await load(location.href)
    } catch {
      missed()
    }
  })

${actScript}
  document.addEventListener('click', async (event) => {
    const button = event.target.closest('button')
    if (button?.dataset.act) return open(JSON.parse(button.dataset.act))
    if (button?.dataset.copy) {
      // Over plain HTTP, but to this machine, browsers give a page no clipboard.
      const copied = navigator.clipboard?.writeText(button.dataset.copy) ?? Promise.reject()
      await copied.then(
        () => { button.textContent = words.copied },
        () => prompt(words.copy, button.dataset.copy),
      )
      return
    }
  })
})()`
