import { expect, it } from 'vitest'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { startApp } from '../support/app.ts'
import { api } from '../support/bridge.ts'
import { passingClock } from '../support/clock.ts'
import { failureRow } from '../support/failure-row.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()
const long = process.env['LONG'] === '1'
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
interface Source {
  readonly lastPollAt: string | null
  readonly nextPollAt: string | null
}

/** How late anything may be on a busy machine. */
const slackMs = 3_000

it(
  'a backlog that takes more than the minute allows leaves the head of the feed fresh',
  async () => {
    const row = failureRow('More rows wait than the minute allows')
    const { sandbox, expected, ids, calls } = await rig(4_000, {
      clock: systemClock,
      budget: 'unitsPerDay: 5000, requestsPerMinute: 20',
    })
    const startMs = Date.now()
    await until('the walk has spent what it may of the minute', () => calls().length >= 18, minuteMs / 2)
    const news = `main.${sandbox.fire().id}`
    expected.push(news)
    // Until the walk has room again, most of a minute passes.
    await until('what fires now arrives', () => ids().includes(news), 15_000)
    await until('the rest of the minute is spent', () => calls().length >= 20)
    await row.kept('what is new is read every 5 s meanwhile', () => {
      const [last, ...heads] = calls().slice(17)
      expect(heads.map(({ page }) => page)).toEqual([1, 1])
      for (const [index, { atMs }] of heads.entries())
        expect(atMs - ([last, ...heads][index]?.atMs ?? 0)).toBeLessThan(5_000 + slackMs)
    })
    const asked = calls().map(({ page }) => page)
    // On a busy machine these take more than 5 s, and the head is among them again.
    const older = asked.filter((page) => page !== 1)
    await row.kept('for which a tenth of `requestsPerMinute` is kept', () => {
      expect(older).toEqual(pages(2, older.length + 1))
      // The walk has the other 18, of which the head may be the last where it was due.
      expect(asked.findLastIndex((page) => page !== 1)).toBeGreaterThanOrEqual(16)
      expect(asked.slice(18)).toEqual([1, 1])
    })
    const read = expected.slice(0, 100 * (older.length + 1))
    await until('all that was read arrives', () => ids().length > read.length, 15_000)
    await row.twice('nothing', () => expect(new Set(ids()).size).toBe(ids().length))
    expect(ids().toSorted()).toEqual([...read, news].toSorted())
    // What the minute allows is read long before it is over: nothing else holds the walk up.
    await row.heals('as fast as `requestsPerMinute`', () =>
      expect((calls()[17]?.atMs ?? 0) - startMs).toBeLessThan(minuteMs / 2),
    )
    if (long) await until('everything arrives', () => ids().length >= expected.length, 4 * minuteMs)
    await row.inLong.kept('everything', () => expect(new Set(ids())).toEqual(new Set(expected)))
    await row.inLong.twice('nothing', () => expect(ids()).toHaveLength(expected.length))
    await row.inLong.heals('and the budget allow', () => {
      const times = calls().map(({ atMs }) => atMs)
      for (const [index, atMs] of times.entries())
        if (index >= 20) expect(atMs - (times[index - 20] ?? 0)).toBeGreaterThan(minuteMs - 100)
      // Forty pages, and the head between them: up to 18 pages in each minute.
      expect((calls().findLast(({ page }) => page !== 1)?.atMs ?? 0) - startMs).toBeLessThan(3 * minuteMs)
    })
  },
  long ? 300_000 : 60_000,
)

it('a backlog that takes more than the minute allows is read on beside that of another source of its account', async () => {
  const row = failureRow('More rows wait than the minute allows')
  const sandbox = await startSandbox({ history: 3_000, tokens: [{ value: 'one' }, { value: 'two' }] })
  const hook = await startWebhookReceiver()
  const ids: string[] = []
  hook.answerWith(({ headers }) => {
    ids.push(String(headers['webhook-id']))
    return { status: 204 }
  })
  const source = (token: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, account: desk, startFrom: beginning, budget: { requestsPerMinute: 20 } }`
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: ${source('one')}, spare: ${source('two')} }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  const pauses = [0, 0]
  const heads = async () => {
    const { sources } = await api<{ sources: Source[] }>(url, '/api/v1/status')
    for (const [index, { lastPollAt, nextPollAt }] of sources.entries()) {
      const pauseMs = Date.parse(nextPollAt ?? '') - Date.parse(lastPollAt ?? '')
      if (pauseMs >= 10_000 && pauseMs < 11_000) pauses[index] = pauseMs
    }
    return pauses.every((pauseMs) => pauseMs > 0)
  }
  await row.kept(
    'less often where six tenths of it are too few for that of all sources of an account',
    // Of 20 calls a minute 12 are for the heads of both, as many as for that of a source alone.
    () => until('each source waits ten seconds with its head', heads, 40_000),
  )
  const calls = sandbox.requests.length
  await row.heals('as fast as `requestsPerMinute`', () => expect(calls).toBeGreaterThanOrEqual(18))
  await row.twice('nothing', () => expect(new Set(ids).size).toBe(ids.length))
}, 60_000)

function pages(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

it('a backlog that takes more than the budget leaves half of it to what fires', async () => {
  const row = failureRow("More rows wait than the day's units")
  const clock = passingClock()
  const resetMs = Math.floor(clock.now() / minuteMs) * minuteMs + 12 * hourMs
  const resetsAt = new Date(resetMs).toISOString().slice(11, 16)
  const { url, sandbox, expected, ids, calls } = await rig(600, {
    clock,
    poll: 'poll: { every: 1h },',
    budget: `unitsPerDay: 6, resetsAt: "${resetsAt}", timeZone: UTC`,
  })
  const ofDay = (day: number) =>
    calls().filter(({ atMs }) => Math.floor((atMs - resetMs) / dayMs) === day - 1)
  const older = (day: number) => ofDay(day).filter(({ page }) => (page ?? 1) > 1).length
  await until('the walk has spent what it may of the day', () => ids().length >= 300, 15_000)
  const fired = `main.${sandbox.fire().id}`
  expected.push(fired)
  clock.pass(hourMs)
  await until('what fires now arrives', () => ids().includes(fired))
  await row.kept('a backlog takes half of the units that are left, the rest is for what fires', () => {
    expect(older(0)).toBe(2)
    expect(ofDay(0)).toHaveLength(4)
  })
  await until(
    'everything arrives',
    async () => {
      const { sources } = await api<{ sources: Source[] }>(url, '/api/v1/status')
      const restMs = Date.parse(sources[0]?.nextPollAt ?? '') - clock.now()
      // Not before the next poll is planned: on a busy machine whole days would go by without one.
      if (restMs > 0) clock.pass(Math.min(restMs, 30 * minuteMs))
      return ids().length >= expected.length
    },
    30_000,
  )
  await row.kept('everything', () => expect(new Set(ids())).toEqual(new Set(expected)))
  await row.twice('nothing', () => expect(ids()).toHaveLength(expected.length))
  await row.heals('the next budget days', () => {
    for (const day of [0, 1, 2]) expect(ofDay(day).length).toBeLessThanOrEqual(6)
    expect(older(1)).toBeGreaterThan(0)
    expect(older(0) + older(1) + older(2)).toBe(calls().filter(({ page }) => (page ?? 1) > 1).length)
  })
}, 60_000)

async function rig(
  history: number,
  { clock, budget, poll = '' }: { clock: Clock; budget: string; poll?: string },
) {
  const sandbox = await startSandbox({ history, clock })
  const hook = await startWebhookReceiver()
  const ids: string[] = []
  hook.answerWith(({ headers }) => {
    ids.push(String(headers['webhook-id']))
    return { status: 204 }
  })
  const text = `
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, ${poll} budget: { ${budget} } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `
  const { url } = await startApp(text, { clock })
  return {
    url,
    sandbox,
    expected: sandbox.rows.map(({ id }) => `main.${id}`),
    ids: () => ids,
    calls: () => sandbox.requests,
  }
}
