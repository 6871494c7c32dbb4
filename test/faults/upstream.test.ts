import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, createApp } from '../../src/app/app.ts'
import { createSandbox, type InjectedFault, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { configOf, startApp } from '../support/app.ts'
import { api } from '../support/bridge.ts'
import { failureRow } from '../support/failure-row.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/** What the Market Data API may answer, under a whole bridge: alerts over several pages, all of them sent once. */

const redis = useRedis()
const long = process.env['LONG'] === '1'
const inTime = { timeout: long ? 300_000 : 60_000 }
const mebibyte = 1_048_576
/** How late anything may be on a busy machine. */
const slackMs = 4_000

type Faults = Readonly<Record<string, readonly InjectedFault[]>>

const spoilt: Faults = {
  'three times 500': [{ kind: 'status', status: 500, times: 3 }],
  'HTML with 503': [{ kind: 'status', status: 503, body: '<html>busy</html>', times: 2 }],
  'no answer at all': [{ kind: 'hang' }],
  'headers, and then nothing': [{ kind: 'hang', headersSent: true }],
  'a byte now and then': [{ kind: 'drip', intervalMs: 400, bytes: 1 }],
  'a body that is cut': [{ kind: 'cut', times: 2 }],
  'half a JSON text with 200': [{ kind: 'malformed', times: 2 }],
  'a login page with 200': [{ kind: 'html', times: 2 }],
  'a gzip bomb of 200 MB': [{ kind: 'bomb', bytes: 200 * mebibyte, times: 2 }],
  'a page of 10 MB': [{ kind: 'huge', bytes: 10 * mebibyte, times: 2 }],
  'JSON of depth 100,000': [{ kind: 'deep', depth: 100_000, times: 2 }],
  'a page without meta': [{ kind: 'shape', shape: 'noMeta', times: 2 }],
  'a page without data': [{ kind: 'shape', shape: 'noData', times: 2 }],
  'numbers as text': [{ kind: 'shape', shape: 'stringMeta', times: 2 }],
  'a lastPage of 0': [{ kind: 'shape', shape: 'lastPage0', times: 2 }],
  'another page than was asked for': [{ kind: 'shape', shape: 'wrongPage', times: 2 }],
  'more rows than a page has': [{ kind: 'shape', shape: 'extraRows', times: 2 }],
  'an empty page that claims more': [{ kind: 'shape', shape: 'emptyData', times: 3 }],
  'a 403 that no documentation knows': [{ kind: 'status', status: 403, code: 'blocked', times: 3 }],
  'a redirect to another host': [{ kind: 'status', status: 302, location: 'http://127.0.0.1:1/', times: 2 }],
}

/** Of three pages, from the top down. */
const midWalk: Faults = {
  'an empty third page that claims more': [{ kind: 'shape', shape: 'emptyData', page: 3, times: 3 }],
  'a third page that fails after two were good': [{ kind: 'status', status: 500, page: 3, times: 3 }],
  'a third page that is cut': [{ kind: 'cut', page: 3, times: 2 }],
}
const moving: Faults = {
  'a lastPage that shrinks between two pages': [
    { kind: 'between', page: 3, changes: Array.from({ length: 60 }, () => ({ removeAt: 0 })) },
  ],
  'news between two pages': [{ kind: 'between', page: 3, changes: [{ fire: 40 }] }],
}

/** Each is tried again after 2 s, three times; after the fourth, each pause is twice the one before, up to a minute. */
const pausesMs = [2_000, 2_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000].slice(0, long ? 9 : 5)
const forLong = '500 again and again'
const badRows = 'bad rows among the good'

describe('the API answers', () => {
  const sources = new Map<string, Source>()
  /** By source, in order. */
  const arrivals = new Map<string, readonly { readonly id: number; readonly atMs: number }[]>()
  const lines: Record<string, unknown>[] = []
  let hook: WebhookReceiver
  let app: App
  let url: string
  const caughtUp: Promise<void>[] = []

  const seen = new Map<string, ReturnType<typeof overcome>>()
  const seenOf = async (name: string) => {
    const result = (await seen.get(name)) ?? (await overcome(name))
    const source = sources.get(name)?.name
    const state = () => api<{ sources: { name: string; state: string }[] }>(url, '/api/v1/status')
    await until('the status is well again', async () =>
      (await state()).sources.some((each) => each.name === source && each.state === 'running'),
    )
    return result
  }

  // All of them at once, each a source of one bridge: the waits add up to one.
  beforeAll(async () => {
    hook = await startWebhookReceiver()
    hook.answerWith(({ headers, atMs }) => {
      const [from = '', id] = String(headers['webhook-id']).split('.')
      arrivals.set(from, [...(arrivals.get(from) ?? []), { id: Number(id), atMs }])
      return { status: 204 }
    })
    const many: Faults = {
      [badRows]: [{ kind: 'badRows' }],
      [forLong]: [{ kind: 'status', status: 500, times: pausesMs.length }],
    }
    for (const [name, faults] of Object.entries({ ...spoilt, ...midWalk, ...moving, ...many })) {
      const sandbox = createSandbox({ history: name in midWalk || name in moving ? 203 : 103 })
      const shown = new Set(sandbox.rows.map(({ id }) => id))
      sandbox.on('fired', ({ id }) => shown.add(id))
      for (const fault of faults) sandbox.fault(fault)
      const { url } = await sandbox.start()
      sources.set(name, { name: `s${sources.size}`, url, sandbox, shown })
    }
    // Below the pause after a failure, so that one that is left out shows; no shorter: each poll of thirty sources costs.
    const text = configText([...sources.values()], hook.url, '1800ms')
    const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
    app = createApp(configOf(text), { log: createLogger({ level: 'info', destination: { write } }) })
    url = await app.start()
    for (const name of sources.keys()) seen.set(name, overcome(name))
    // The test of each tells what is wrong with it.
    void Promise.allSettled(seen.values())
  }, 60_000)

  afterAll(async () => {
    await app.stop()
    for (const { sandbox } of sources.values()) await sandbox.stop()
    await hook.stop()
  }, 60_000)

  it.each(Object.keys(spoilt))(
    '%s: everything arrives once, and so does what fires next',
    inTime,
    async (name) => {
      const row = failureRow('It fails (5xx), hangs')
      const seen = await seenOf(name)
      await row.kept('everything', () => expect(seen.missing).toEqual([]))
      await row.kept('such a page is refused whole', () =>
        expect(seen.firstArrivedMs).toBeGreaterThanOrEqual(seen.firstGoodMs),
      )
      await row.twice('nothing', () => expect(seen.repeated).toEqual([]))
      await row.heals('the next calls: 2 s at first', () => expectPauses(seen.pauses))
    },
  )

  it('500 again and again is asked less and less often, once a minute in the end', inTime, async () => {
    const row = failureRow('It fails (5xx), hangs')
    const seen = await seenOf(forLong)
    await row.kept('everything', () => expect(seen.missing).toEqual([]))
    await row.twice('nothing', () => expect(seen.repeated).toEqual([]))
    expect(seen.pauses).toHaveLength(pausesMs.length)
    expectPauses(seen.pauses)
    await row.inLong.heals('then up to once a minute', () =>
      expect(seen.pauses.at(-1)?.ms).toBeGreaterThan(59_000),
    )
  })

  it.each(Object.keys(midWalk))('%s: the walk goes on where it was', inTime, async (name) => {
    const row = failureRow('A page in the middle of a catch-up fails')
    const seen = await seenOf(name)
    await row.kept('everything', () => expect(seen.missing).toEqual([]))
    await row.kept('the walk goes on where it was', () =>
      expect(seen.pages.filter((page) => page === 2)).toEqual([2]),
    )
    await row.twice('nothing', () => expect(seen.repeated).toEqual([]))
    await row.heals('the next poll', () => expect(seen.pagesAfter.slice(0, 3)).toEqual([1, 3, 1]))
  })

  it.each(Object.keys(moving))('%s: the walk counts anew, and passes no row by', inTime, async (name) => {
    const row = failureRow('A page in the middle of a catch-up fails')
    const seen = await seenOf(name)
    await row.kept('everything', () => expect(seen.missing).toEqual([]))
    await row.twice('nothing', () => expect(seen.repeated).toEqual([]))
    // Two pages more at most: the same one once again, since another server may have answered, and the one that holds what
    // had moved.
    await row.heals('the next poll', () => {
      expect(seen.pages.filter((page) => page > 1).length).toBeLessThanOrEqual(4)
      expect(seen.pagesAfter.slice(1).findLastIndex((page) => page > 1)).toBeLessThan(4)
    })
  })

  it('bad rows among the good: the good arrive once', inTime, async () => {
    const seen = await seenOf(badRows)
    expect(seen).toMatchObject({ missing: [], repeated: [] })
  })

  /** Waits until everything has arrived, what fires then too, and says how it went. */
  async function overcome(name: string) {
    const source = sources.get(name)
    if (!source) throw new Error(name)
    const { sandbox, shown } = source
    const came = () => arrivals.get(source.name) ?? []
    const hasAll = () => came().length >= shown.size && new Set(came().map(({ id }) => id)).size >= shown.size
    const everything = until(`everything arrives (${source.name})`, hasAll, long ? 250_000 : 45_000)
    if (name !== forLong) caughtUp.push(everything)
    await everything
    // All sources share one queue: what fires next would wait behind what others have caught up on.
    await Promise.allSettled(caughtUp)
    sandbox.fire()
    await until('what fires next arrives', hasAll, 20_000)
    const logged = lines.filter((line) => line['source'] === source.name)
    expect(logged.filter(({ msg }) => msg === 'poller.crashed')).toEqual([])
    const { requests } = sandbox
    const done = logged.filter(({ msg }) => msg === 'poll.done')
    const ids = came().map(({ id }) => id)
    const arrived = new Set(ids)
    const lastSpoilt = requests.findLastIndex(({ faults }) => faults.length > 0)
    return {
      missing: [...shown].filter((id) => !arrived.has(id)),
      repeated: ids.filter((id, index) => ids.indexOf(id) !== index || !shown.has(id)),
      firstArrivedMs: came()[0]?.atMs ?? 0,
      firstGoodMs: requests.find(({ faults }) => faults.length === 0)?.atMs ?? Number.POSITIVE_INFINITY,
      pages: requests.map(({ page }) => page ?? 1),
      pagesAfter: requests.slice(lastSpoilt + 1).map(({ page }) => page ?? 1),
      /**
       * After each call of the first page that was spoilt: the time to the next call, when the bridge said that it would
       * come, and what the poll took of it.
       */
      pauses: requests.slice(0, lastSpoilt + 1).map(({ atMs }, index) => ({
        ms: (requests[index + 1]?.atMs ?? Number.NaN) - atMs,
        plannedMs: Date.parse(String(done[index]?.['nextAt'])) - atMs,
        pollMs: Number(done[index]?.['durationMs']),
      })),
    }
  }
})

interface Pause {
  readonly ms: number
  readonly plannedMs: number
  readonly pollMs: number
}

/** No call comes early. How late one comes is up to the machine, so the latest is that of the plan. */
function expectPauses(found: readonly Pause[]): void {
  expect(found.length).toBeGreaterThan(0)
  for (const [index, { ms, plannedMs, pollMs }] of found.entries()) {
    const expectedMs = pausesMs[index] ?? Number.NaN
    // The longer ones are measured from the beginning of the poll before.
    expect(ms).toBeGreaterThanOrEqual(expectedMs - (index < 3 ? 0 : slackMs / 4))
    expect(plannedMs).toBeLessThan(pollMs + expectedMs + slackMs / 4)
  }
}

describe('429 with the time to wait', () => {
  it('nobody asks before it is over, also after a restart', { timeout: 40_000 }, async () => {
    const row = failureRow('It answers 429')
    const hook = await startWebhookReceiver()
    const untilMs = Math.ceil(Date.now() / 1_000 + 6) * 1_000
    const waits = { s0: '3', s1: new Date(untilMs).toUTCString(), s2: String(10 * 86_400) }
    const sources = await Promise.all(
      Object.entries(waits).map(async ([name, retryAfter]) => {
        const sandbox = await startSandbox({ history: 130 })
        const times = name === 's0' ? 2 : 1
        sandbox.fault({ kind: 'status', status: 429, code: 'rate_limited', retryAfter, after: 1, times })
        return { name, url: sandbox.url, sandbox, shown: new Set(sandbox.rows.map(({ id }) => id)) }
      }),
    )
    const text = configText(sources, hook.url)
    const first = await startApp(text)
    await until('all are refused once', () => sources.every(({ sandbox }) => sandbox.requests.length >= 2))
    await first.app.stop()
    const { url } = await startApp(text)
    const soon = sources.filter(({ name }) => name !== 's2')
    const ids = () => hook.requests.map(({ headers }) => String(headers['webhook-id']))
    const expected = soon.flatMap(({ name, shown }) => [...shown].map((id) => `${name}.${id}`))
    const missing = () => {
      const arrived = new Set(ids())
      return expected.filter((id) => !arrived.has(id))
    }
    await until('all arrive that may be read', () => missing().length === 0, 25_000)
    const pausesOf = ({ requests }: Sandbox) =>
      requests.flatMap(({ status, atMs }, index) =>
        status === 429 ? [{ atMs, nextMs: requests[index + 1]?.atMs ?? Number.POSITIVE_INFINITY }] : [],
      )
    const [told, dated, far] = sources.map(({ sandbox }) => pausesOf(sandbox))
    await row.kept('everything', () => expect(missing()).toEqual([]))
    await row.kept('nobody asks before `Retry-After` is over, also after a restart', () => {
      expect(told).toHaveLength(2)
      for (const { atMs, nextMs } of told ?? []) expect(nextMs - atMs).toBeGreaterThanOrEqual(3_000)
      expect(dated?.[0]?.nextMs).toBeGreaterThanOrEqual(untilMs)
      expect(far).toMatchObject([{ nextMs: Number.POSITIVE_INFINITY }])
    })
    await row.twice('nothing', () => expect(new Set(ids()).size).toBe(ids().length))
    await row.heals('when it says', () => {
      for (const { atMs, nextMs } of told ?? []) expect(nextMs - atMs).toBeLessThan(3_000 + slackMs)
      expect(dated?.[0]?.nextMs).toBeLessThan(untilMs + slackMs)
    })
    const status = await api<{ sources: { name: string; reason: string; nextPollAt: string }[] }>(
      url,
      '/api/v1/status',
    )
    const held = status.sources.find(({ name }) => name === 's2')
    expect(held?.reason).toContain('asked to wait')
    await row.heals(
      'after 25 h at most',
      Date.parse(held?.nextPollAt ?? '') - (far?.[0]?.atMs ?? 0) - slackMs,
    )
  })
})

interface Source {
  readonly name: string
  readonly url: string
  readonly sandbox: Sandbox
  readonly shown: Set<number>
}

function configText(sources: readonly Source[], hook: string, every = '1s'): string {
  // In the half hour before the reset pages are swept, which these tests would count.
  const resetsAt = new Date(Date.now() + 12 * 3_600_000).toISOString().slice(11, 16)
  const poll = `startFrom: beginning, poll: { every: ${every}, minInterval: 400ms, historyPages: 0 }, budget: { unitsPerDay: 1000000, resetsAt: "${resetsAt}", timeZone: UTC }`
  return `
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources:
${sources.map(({ name, url }) => `  ${name}: { baseUrl: "${url}", token: sandbox-token, ${poll} }`).join('\n')}
sinks: { hook: { type: webhook, url: "${hook}", allowPrivateNetworks: true, concurrency: 20 } }
routes: [{ sinks: [hook] }]
`
}
