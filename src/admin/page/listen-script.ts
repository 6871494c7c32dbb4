/** The part of the script that hears of news by server-sent events; within the function of `script.ts`. */
export const listenScript = `
  /**
   * A browser has six connections to one host, over all of its windows, and a stream takes one for as long as it lasts. With six of them
   * none is left to ask for anything, also in a seventh window. So only windows that are seen have one, and of these a few; the others ask
   * from time to time. Each tells the others of itself, and those with the lowest number have the streams.
   */
  const streamsMax = 3
  const own = Math.random()
  const others = new Map()
  const windows = new BroadcastChannel('alert-bridge windows')
  const tell = () => { if (!document.hidden) windows.postMessage(own) }
  const isOneOfFew = () => {
    for (const [other, toldMs] of others) if (performance.now() - toldMs > 3 * fallbackMs) others.delete(other)
    return [...others.keys()].filter((other) => other < own).length < streamsMax
  }
  windows.addEventListener('message', ({ data: other }) => {
    if (!others.has(other)) tell()
    others.set(other, performance.now())
    listen()
  })
  let events
  let openedMs = 0
  let heardMs = 0
  /** A proxy that gathers what it passes on lets a stream open, and nothing else: the bridge itself says something at once. */
  const isHeard = () => events?.readyState === EventSource.OPEN && heardMs >= openedMs && performance.now() - heardMs < silentMs
  const listen = () => {
    if (document.hidden || !isOneOfFew()) {
      events?.close()
      events = undefined
    } else if (!events || events.readyState === EventSource.CLOSED) {
      events = new EventSource('/api/v1/events')
      events.addEventListener('open', () => { openedMs = performance.now() })
      for (const name of ['beat', 'change']) events.addEventListener(name, () => { heardMs = performance.now() })
      // Also at its beginning: nobody says again what changed while nobody listened.
      for (const name of ['open', 'change']) events.addEventListener(name, refresh)
      // Later: a page that is being left has this event, too, and the next page waits until its handler has ended.
      events.addEventListener('error', () => setTimeout(refresh))
    }
  }
  setInterval(() => {
    tell()
    if (isHeard()) return void catchUp()
    // No beat came: the bridge hangs, or the connection was lost without an end, which the browser does not notice.
    if (events?.readyState === EventSource.OPEN && performance.now() - openedMs >= silentMs) events.close()
    listen()
    void refresh()
  }, fallbackMs)`
