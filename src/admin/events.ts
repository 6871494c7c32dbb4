import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { safeHeaders } from './guard/headers.ts'
import type { AdminDeps } from './ports.ts'
import { sendProblem } from './problem.ts'

/**
 * GET /api/v1/events : server-sent events. `change`: what the status page shows has changed, so a listener fetches what it needs;
 * `beat`: the bridge still answers, also at once. Without listeners nothing is read; one reading serves all of them.
 */
export function registerEvents(app: FastifyInstance, deps: AdminDeps): void {
  const listeners = new Set<ServerResponse>()
  let last = ''
  let looking: AbortController | undefined
  const send = (text: string) => {
    // One that does not read on is disconnected; its browser connects again.
    for (const listener of listeners)
      if (listener.writableLength > unreadBytesMax) listener.destroy()
      else listener.write(text)
  }
  const run = async (signal: AbortSignal) => {
    for (let sentMs = deps.clock.monotonicMs(); !signal.aborted; ) {
      const state = await stateHash(deps).catch(() => 'none')
      const isQuiet = state === last && deps.clock.monotonicMs() - sentMs < beatEveryMs
      // A beat keeps proxies from closing the connection; a page that gets none for a while shows that the bridge does not answer.
      if (!isQuiet) send(`event: ${state === last ? 'beat' : 'change'}\ndata: ${state}\n\n`)
      if (!isQuiet) sentMs = deps.clock.monotonicMs()
      last = state
      await deps.clock.sleep(lookEveryMs, signal).catch(() => {})
    }
  }
  const leave = (listener: ServerResponse) => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    looking?.abort(new Error('nobody listens'))
    looking = undefined
  }

  app.get(eventsPath, { handlerTimeout: timerMsMax, config: { about: eventsAbout } }, (request, reply) => {
    if (listeners.size >= listenersMax)
      return void sendProblem(reply, { status: 503, detail: `${listenersMax} pages listen already.` })
    reply.hijack()
    const { raw } = reply
    raw.writeHead(200, {
      ...safeHeaders,
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
    })
    // The beat, since a page that gets nothing for a moment asks by itself: a proxy may gather what it passes on.
    raw.write(`retry: ${retryMs}\n\nevent: beat\ndata: ${last || 'none'}\n\n`)
    if (request.method === 'HEAD') return void raw.end()
    listeners.add(raw)
    raw.on('close', () => leave(raw))
    raw.on('error', () => leave(raw))
    if (looking !== undefined) return
    looking = new AbortController()
    void run(looking.signal)
  })
  app.addHook('preClose', async () => {
    for (const listener of listeners) listener.end()
  })
}

export const eventsPath = '/api/v1/events'
const eventsAbout = {
  says: 'Server-sent events: change, when what the page shows changed',
  answer: 'text/event-stream',
}

/** As the page is fetched again: an alert is shown about so long after it was seen. */
const lookEveryMs = 1_000
const beatEveryMs = 15_000
const retryMs = 2_000
const listenersMax = 100
const unreadBytesMax = 64 * 1_024
/** The longest that a timer of Node.js can be. */
const timerMsMax = 2_147_483_647

/** The same as long as nothing changed but the time. Whatever happens to an alert changes a count of its sink. */
async function stateHash({ ports }: Pick<AdminDeps, 'ports'>): Promise<string> {
  const [status, done, silences] = await Promise.all([
    ports.status().then(
      // `ready` says the verdict once more.
      ({ uptimeSeconds: _, ready: _ready, ...rest }) => rest,
      () => 'none',
    ),
    ports.audit.list(1).catch(() => []),
    // One that ended by itself is no action.
    ports.silences.list().catch(() => 'none'),
  ])
  return createHash('sha256')
    .update(JSON.stringify([status, done, silences], toTheMinute))
    .digest('base64url')
    .slice(0, 16)
}

/** Ages and what is left of a time, which are others at each look; a `text` says in words what stands beside it. */
function toTheMinute(key: string, value: unknown): unknown {
  if (key === 'text') return undefined
  return /seconds$/i.test(key) && typeof value === 'number' ? Math.round(value / 60) : value
}
