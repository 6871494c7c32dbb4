import { Redis } from 'ioredis'
import { expect, it, vi } from 'vitest'
import { createFeedClient } from '../../src/feed/client.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Secret } from '../../src/lib/secret.ts'
import type { PollerDeps } from '../../src/poller/settings.ts'
import { createRuleBook } from '../../src/routing/rules.ts'
import { type SandboxOptions, sandboxToken } from '../../src/sandbox/sandbox.ts'
import type { RulesReading, Schedule } from '../../src/schedule/schedule.ts'
import type { RedisClient } from '../../src/store/connection/redis.ts'
import { createRuleStore } from '../../src/store/source/rules.ts'
import { startDoor } from '../support/door.ts'
import { onTestFinished } from '../support/finished.ts'
import { pollerRig, pollOnePage, untilCalls } from '../support/poller.ts'
import { useRedis } from '../support/redis.ts'

const server = useRedis()
const soon = { timeout: 10_000, interval: 5 }

/** A poller whose plan asks for the rules until it has got so many readings. */
async function rig({
  wanted = 1,
  // A poll that is due within two seconds is not kept waiting by rules.
  everyMs = 2_500,
  sandbox: options,
}: {
  wanted?: number
  everyMs?: number
  sandbox?: SandboxOptions
} = {}) {
  const made = await pollerRig({
    redis: server.client(),
    everyMs,
    sandbox: { evaluations: 'true', ...options },
  })
  const feed = createFeedClient({ source: 'main', baseUrl: made.url, token: new Secret(sandboxToken) })
  const bookOf = (redis: RedisClient) =>
    createRuleBook({
      ...{ source: 'main', feed, leaveUnits: async () => 10, clock: systemClock, log: made.captured.log },
      ...{ ledger: made.ledger, metrics: made.metrics, onBudgetRefused: async () => {} },
      store: createRuleStore({ redis, prefix: made.prefix, source: 'main' }),
    })
  const rules = bookOf(made.redis)
  const readings: RulesReading[] = []
  const observed: Parameters<Schedule['observe']>[0][] = []
  const plan: { wanted: number; by?: RedisClient } = { wanted }
  const asks = vi.fn((redis: RedisClient) => readings.length < plan.wanted && (plan.by ?? redis) === redis)
  const run = (redis: RedisClient = made.redis, more: Partial<PollerDeps> = {}) =>
    made.replica(redis, {
      rules: redis === made.redis ? rules : bookOf(redis),
      ...more,
      createSchedule: () => {
        let lastMs: number | undefined
        return {
          observe(poll) {
            lastMs = poll.atMs
            observed.push(poll)
          },
          next: (nowMs) => ({ atMs: lastMs === undefined ? nowMs : lastMs + everyMs, reason: 'fixed' }),
          wantsRules: () => asks(redis),
          learnRules: (reading) => readings.push(reading),
          ...{ learnHistory() {}, setHot() {}, snapshot: () => ({}) },
          describe: () => ({
            ...{
              learnedFrom: 0,
              memory: 'fresh',
              firing: '',
              onMarks: false,
              announced: null,
              hotUntilMs: 0,
            },
          }),
        }
      },
      async poll(readPage) {
        const result = await pollOnePage(readPage)
        return { ...result, fired: [{ firedAtMs: Date.now(), passedOver: false, ruleIds: ['12'] }] }
      },
    })
  const reads = () => made.sandbox.requests.filter(({ path }) => path === '/api/v1/alerts').length
  const units = async () =>
    (await made.metrics.budgetUnits.get()).values.find(({ labels }) => labels.purpose === 'rules')?.value
  return { ...made, rules, run, plan, readings, observed, asks, reads, units }
}

it('a plan that asks for the rules learns what they announce, for a unit; and which rules alerts name', async () => {
  const { run, readings, observed, sandbox, units, reads } = await rig()
  run()
  await vi.waitFor(() => expect(readings).toHaveLength(1), soon)
  const [reading] = readings
  expect(reading).toMatchObject({ pages: 1 })
  expect(reading?.rules.map(({ id }) => id)).toEqual(sandbox.rules.map(({ id }) => String(id)))
  for (const { nextMs, lastMs } of reading?.rules ?? []) {
    expect(nextMs).toBeGreaterThan((reading?.atMs ?? 0) - 1_000)
    expect(lastMs).toBeLessThan(nextMs ?? 0)
  }
  expect([reads(), await units()]).toEqual([1, 1])
  expect(observed[0]?.ruleIds).toEqual([['12']])
})

it('they are read also where polls never come so far apart as two seconds, in the first half of a pause', async () => {
  const { run, readings } = await rig({ everyMs: 500 })
  run()
  await vi.waitFor(() => expect(readings).toHaveLength(1), soon)
})

it('what was read for routes is learned as well, and costs nothing more', async () => {
  const { run, readings, rules, reads, units } = await rig({ wanted: 0 })
  await rules.prepare(['12'])
  run()
  await vi.waitFor(() => expect(readings).toHaveLength(1), soon)
  expect([reads(), await units()]).toEqual([1, 1])
})

it('a page of rules that fails is not bought again and again', async () => {
  const { run, readings, sandbox, reads, asks } = await rig()
  sandbox.fault({ kind: 'status', status: 500, endpoint: 'alerts' })
  run()
  await vi.waitFor(() => expect(reads()).toBe(1), soon)
  await untilCalls(sandbox, 3)
  expect([readings.length, reads(), asks.mock.calls.length]).toEqual([0, 1, 1])
})

it('a replica that polls again after another one does not report the rules as it had read them before', async () => {
  const { run, plan, readings, sandbox } = await rig()
  const door = await startDoor(server.socketPath)
  const away = new Redis(door.url, { maxRetriesPerRequest: 0, retryStrategy: () => 50 })
  away.on('error', () => {})
  onTestFinished(() => away.disconnect())
  const reported: string[] = []
  const as = (name: string): Partial<PollerDeps> => ({
    limits: { unitsPerDay: 1_000, minIntervalMs: 10, leaseTtlMs: 1_000 },
    onRules(reading) {
      const rule = reading.rules.find(({ id }) => id === 12)
      reported.push(`${name}: ${rule?.disabledReason ?? 'well'}`)
      return []
    },
  })
  sandbox.setRule(12, { disabledReason: 'halted' })
  const first = run(away, as('first'))
  await vi.waitFor(() => expect(reported).toEqual(['first: halted']), soon)
  door.close()
  sandbox.setRule(12, { disabledReason: null })
  // Not the first: what it decides right after its reading, it may decide here.
  const other = server.client()
  Object.assign(plan, { wanted: readings.length + 1, by: other })
  const second = run(other, as('second'))
  await vi.waitFor(() => expect(reported).toEqual(['first: halted', 'second: well']), soon)
  await second.stop()
  await door.open()
  const before = sandbox.requests.length
  await untilCalls(sandbox, before + 2)
  expect(first.poller.status().state).not.toBe('standby')
  expect(reported).toEqual(['first: halted', 'second: well'])
})
