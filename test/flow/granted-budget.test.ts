import { expect, it } from 'vitest'
import type { SourcePlanView } from '../../src/admin/ports.ts'
import type { BudgetStatus } from '../../src/admin/views/status-view.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts'
import { budgetDay, grantSchema } from '../../src/schedule/budget.ts'
import { createGrantStore } from '../../src/store/ledger/grant.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { startApp } from '../support/app.ts'
import { api } from '../support/bridge.ts'
import { passingClock } from '../support/clock.ts'
import { failureRow } from '../support/failure-row.ts'
import { clean, hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { pass } from '../support/redis-rig.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()
const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** How late anything may be on a busy machine. */
const slackMs = 4_000

it('an API that grants fewer units than the config is believed: told, shown, never asked again before it said', async () => {
  const { sandbox, app } = await rig('unitsPerDay: 50', { unitsPerDay: 5 })
  const { url, lines } = app
  await until('the lesson', () => lines.some(({ msg }) => String(msg).startsWith('budget.learned')), 15_000)
  const calls = sandbox.requests.length
  const metrics = async () => (await fetch(`${url}/metrics`)).text()
  await until('the gauge', async () =>
    (await metrics()).includes('alert_bridge_budget_units_learned{source="main"} 5\n'),
  )
  expect(await metrics()).toContain(
    'alert_bridge_upstream_rate_limited_total{source="main",limit="budget"} 1\n',
  )
  const { sources } = await api<{ sources: { reason: string }[] }>(url, '/api/v1/status')
  expect(sources[0]?.reason).toMatch(/daily limit/)
  await pass(900)
  expect(sandbox.requests).toHaveLength(calls)
  expect(calls).toBe(6)
}, 30_000)

it("all units of the API's own day are shown by what they were spent for, also those from before it was known", async () => {
  const resetMs = Date.now() + hourMs
  const { app } = await rig(budgetUntil('unitsPerDay: 50', Date.now() + 12 * hourMs), {
    unitsPerDay: 3,
    resets: () => resetMs,
  })
  const budget = async () =>
    (await api<{ sources: { budget: BudgetStatus | null }[] }>(app.url, '/api/v1/status')).sources[0]?.budget
  await until("the API's own day", async () => (await budget())?.note?.includes('starts anew') ?? false)
  const { unitsUsed, spentFor } = (await budget()) ?? {}
  expect(unitsUsed).toBe(3)
  expect(spentFor).toEqual([{ purpose: 'unknown', units: 3 }])
}, 30_000)

it('a spent budget is waited for until the API said, though the config has units left', async () => {
  const row = failureRow("The day's budget is spent, or smaller")
  const resets = { days: 0, atMs: 0 }
  const nextReset = (nowMs: number) => {
    resets.days += 1
    if (resets.days === 1) resets.atMs = nowMs + 5_000
    return resets.days === 1 ? resets.atMs : nowMs + hourMs
  }
  const { sandbox, shown, log, app, well } = await rig(
    budgetUntil('unitsPerDay: 50', Date.now() + 12 * hourMs),
    {
      unitsPerDay: 3,
      resets: nextReset,
    },
  )
  await until(
    'the refusal',
    () => app.lines.some(({ msg }) => String(msg).startsWith('budget.learned')),
    15_000,
  )
  const calls = sandbox.requests.length
  expect(calls).toBe(4)
  shown.fire(3)
  await row.kept('sends go on', () => well())
  expect(sandbox.requests).toHaveLength(calls)
  await until('everything arrives', () => hasAll(shown, log), 15_000)
  const resumedMs = sandbox.requests[calls]?.atMs ?? Number.NaN
  expect(resumedMs).toBeGreaterThanOrEqual(resets.atMs)
  await row.kept('everything stays in the feed', () => expect(judge(shown, log)).toEqual(clean))
  await row.twice('nothing', () => expect(log.taken).toHaveLength(6))
  await row.heals('or when it says', () => expect(resumedMs - resets.atMs).toBeLessThan(slackMs))
}, 40_000)

it('a spent budget is waited for until the reset, and nobody asks before', async () => {
  const row = failureRow("The day's budget is spent, or smaller")
  const clock = passingClock()
  const resetMs = Math.floor(clock.now() / minuteMs) * minuteMs + 2 * hourMs
  const budget = budgetUntil('unitsPerDay: 5', resetMs)
  const { sandbox, shown, log, app, well } = await rig(budget, {}, clock)
  const source = async () =>
    (await api<{ sources: { state: string; nextPollAt: string }[] }>(app.url, '/api/v1/status')).sources[0]
  const state = async () => (await source())?.state
  await until('all are spent', async () => (await state()) === 'budget_spent')
  const plannedMs = Date.parse((await source())?.nextPollAt ?? '')
  expect(plannedMs).toBeGreaterThanOrEqual(resetMs)
  shown.fire(3)
  await row.kept('sends go on', () => well())
  clock.pass(hourMs)
  expect(await state()).toBe('budget_spent')
  clock.pass(resetMs - minuteMs - clock.now())
  expect(await state()).toBe('budget_spent')
  expect(sandbox.requests).toHaveLength(5)
  clock.pass(minuteMs)
  await until('everything arrives', () => hasAll(shown, log))
  await row.kept('everything stays in the feed', () => expect(judge(shown, log)).toEqual(clean))
  await row.twice('nothing', () => expect(log.taken).toHaveLength(6))
  await row.heals("from the reset on, at the plan's first poll", () => {
    const resumedMs = sandbox.requests[5]?.atMs ?? Number.NaN
    expect(resumedMs).toBeGreaterThanOrEqual(plannedMs)
    expect(resumedMs - resetMs).toBeLessThan(2 * slackMs)
  })
}, 40_000)

it.each([
  [20, 'are'],
  [95, 'are not'],
])(
  'of 100 units that the API grants, %d used: the rules %s read, though the config has 2,000',
  async (used, _are) => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const of = { redis: redis.client(), prefix: freshPrefix(), source: 'main' }
    const atMs = Date.now() - 24 * hourMs
    const refused = { atMs, units: 100, sizes: 1 }
    await createGrantStore(of).save({
      v: 1,
      unitsPerDay: 100,
      resetsAtMs: null,
      learnedAtMs: Date.now(),
      refused,
    })
    const day = { resetsAt: '00:00', timeZone: 'Asia/Tehran' }
    const limits = { unitsPerDay: 2_000, requestsPerMinute: 200 }
    const ledger = createLedger({ ...of, ...limits, budgetDay: (nowMs) => budgetDay(nowMs, day) })
    await ledger.reserve({ cost: used, purpose: 'poll' })
    await startApp(`
    redis: { url: "${redis.url}", prefix: ${of.prefix} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, budget: { unitsPerDay: 2000 }, poll: { every: 1s, minInterval: 300ms, historyPages: 0 } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ match: { rule: { name: none } }, sinks: [hook] }, { sinks: [hook] }]
  `)
    sandbox.fire({ ruleIds: ['12'] })
    await hook.received(1)
    const reads = sandbox.requests.filter(({ path }) => path === '/api/v1/alerts')
    expect(reads).toHaveLength(used === 20 ? 1 : 0)
  },
)

it('a page of rules that is refused for the day teaches what the API grants, as a refused poll does', async () => {
  const sandbox = await startSandbox()
  const wait = { retryAfter: '43200', detail: { retryAfter: 43_200 } }
  sandbox.fault({ kind: 'status', status: 429, ...wait, endpoint: 'alerts', times: 0 })
  const of = { redis: redis.client(), prefix: freshPrefix(), source: 'main' }
  const { lines, url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${of.prefix} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, budget: { ${budgetUntil('unitsPerDay: 2000', Date.now() + 6 * hourMs)} } } }
    sinks: { hook: { type: webhook, url: "http://127.0.0.1:9" } }
    routes: [{ sinks: [hook] }]
  `)
  await until('the refusal', () => lines.some(({ msg }) => msg === 'the rules cannot be read'))
  await until('the lesson', () => lines.some(({ msg }) => String(msg).startsWith('budget.learned')))
  const learned = async () => grantSchema.safeParse(await createGrantStore(of).load()).data?.resetsAtMs
  await until(
    'the time of the reset',
    async () => Math.abs(Number(await learned()) - Date.now() - 12 * hourMs) < minuteMs,
  )
  const { data } = await api<{ data: SourcePlanView }>(url, '/api/v1/sources/main/plan')
  const resetMs = Math.round(Number(await learned()) / minuteMs) * minuteMs
  expect(data.resetsAt).toBe(new Date(resetMs).toISOString().slice(11, 16))
})

/** A bridge that has seen three alerts, whose receiver fails until it is well. */
async function rig(budget: string, feed: SandboxOptions, clock?: Clock) {
  const sandbox = await startSandbox({ ...feed, ...(clock ? { clock } : {}) })
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  let down = true
  const log = logOf('hook', hook, { status: 204 }, () => (down ? { status: 503 } : undefined))
  shown.fire(3)
  const app = await startApp(
    `
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, budget: { ${budget} }, poll: { every: 300ms, minInterval: 300ms } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true, retry: { initialDelay: 200ms, maxDelay: 500ms } } }
    routes: [{ sinks: [hook] }]
  `,
    clock ? { clock } : {},
  )
  const well = async () => {
    expect(log.taken).toEqual([])
    down = false
    await until('what was seen before is sent', () => log.taken.length === 3)
  }
  return { sandbox, shown, log, app, well }
}

/** A budget whose day ends at the minute of this instant. */
function budgetUntil(units: string, resetMs: number): string {
  return `${units}, resetsAt: "${new Date(resetMs).toISOString().slice(11, 16)}", timeZone: UTC`
}
