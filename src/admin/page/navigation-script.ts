/** The part of the script that goes from one page to another, by links, by Back and by the search; within the function of `script.ts`. */
export const navigationScript = `
  /** Of the links that were followed, only the last one counts. */
  let followed = 0
  /** What was typed and not asked for does not belong to the page that is shown now. */
  const resetSearch = () => document.querySelector('.search form')?.reset()
  const follow = async (href) => {
    followed += 1
    const own = followed
    const y = scrollY
    try {
      if (!await load(href, () => own === followed)) return
      history.replaceState({ y }, '')
      history.pushState(null, '', href)
      resetSearch()
      const { hash } = new URL(href)
      if (hash) document.getElementById(hash.slice(1))?.scrollIntoView()
      else scrollTo(0, 0)
    } catch (error) {
      if (own !== followed) return
      if (error.isOther) {
        location.href = href
        return
      }
      // The bridge is away, or a proxy says that it is: the browser's own page would not have the token, nor what was typed.
      said.textContent = words.noAnswer
      missed()
    }
  }
  // Blanks around a text are not meant, and what is left empty does not stand in the address.
  document.addEventListener('formdata', ({ formData }) => {
    const fields = [...formData].filter(([, value]) => value.trim())
    for (const name of [...formData.keys()]) formData.delete(name)
    for (const [name, value] of fields) formData.append(name, value.trim())
  })
  document.addEventListener('submit', (event) => {
    const form = event.target
    if (!form.matches('.search form')) return
    event.preventDefault()
    const to = new URL(form.action)
    to.search = new URLSearchParams(new FormData(form))
    void follow(to.href)
  })
  // The browser scrolls before what the reader comes back to is there.
  addEventListener('popstate', async ({ state }) => {
    followed += 1
    const own = followed
    try {
      if (!await load(location.href) || own !== followed) return
      resetSearch()
      if (!state) return
      scrollTo(0, state.y)
      history.replaceState(null, '')
    } catch {
      missed()
    }
  })
  document.addEventListener('click', (event) => {
    if (event.target.closest('button')) return
    const link = event.target.closest('a[href]')
    const isOurs = link?.origin === location.origin && (link.pathname === '/' || link.pathname.split('/')[1] === 'alerts')
    const isHere = link?.hash && isShown(link.href)
    if (!isOurs || isHere || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    void follow(link.href)
  })`
