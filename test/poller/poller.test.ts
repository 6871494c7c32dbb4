import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sourceKeys } from '../../src/store/keys.ts'
import { createSourceOverride } from '../../src/store/source/source-override.ts'
import { createSourceStatus } from '../../src/store/source/source-status.ts'
import { passingClock, wallClock } from '../support/clock.ts'
import { callsDuring, pollerRig, pollOnePage, type RigOptions, untilCalls } from '../support/poller.ts'
import { startRedis, useRedis } from '../support/redis.ts'

const server = useRedis()
const soon = { timeout: 10_000, interval: 5 }
const rig = (options: Omit<RigOptions, 'redis'> = {}) => pollerRig({ redis: server.client(), ...options })

const dayMs = 86_400_000

describe('a poller', () => {
  it('polls at the pace of its schedule, and tells it what came', async () => {
    const { replica, redis, sandbox, reports } = await rig({ everyMs: 100 })
    replica(redis)
    await vi.waitFor(() => expect(reports.length).toBeGreaterThan(3), soon)
    expect(Math.min(...gaps(reports))).toBeGreaterThanOrEqual(100)
    expect(sandbox.requests.length).toBeGreaterThan(3)
    expect(reports[0]).toMatchObject({ ok: true, pages: 1, pagesLeft: 'none' })
  })

  it('is ready after the first poll, and shows other replicas how it goes', async () => {
    const { replica, redis, prefix, sandbox } = await rig({ everyMs: 60_000 })
    const { poller } = replica(redis)
    expect(poller.health()).toMatchObject({ ok: false })
    await untilCalls(sandbox, 1)
    await vi.waitFor(() => expect(poller.health()).toEqual({ ok: true }), soon)
    const store = createSourceStatus({ redis: server.client(), prefix, source: 'main' })
    await vi.waitFor(
      async () => expect(await store.load()).toMatchObject({ state: 'waiting', unitsUsed: 1 }),
      soon,
    )
    const status = await store.load()
    expect(status?.nextPollAtMs).toBeGreaterThan(Date.now() + 50_000)
    expect(status).toMatchObject({ nextReason: 'fixed', unitsPerDay: 1_000, behind: false, lastError: null })
    expect(status?.lastOkAtMs).toBeGreaterThan(Date.now() - 10_000)
  })

  it('tells of a new budget day when it begins, however far away the next poll is', async () => {
    const clock = passingClock()
    const resetMs = Date.now() + dayMs / 2
    const budgetDay = (nowMs: number) => {
      const startMs = nowMs < resetMs ? resetMs - dayMs : resetMs
      return { key: new Date(startMs).toISOString(), startMs, endMs: startMs + dayMs }
    }
    const { replica, redis, sandbox, metrics } = await rig({
      ...{ everyMs: 2 * dayMs, budgetDay },
    })
    const { poller } = replica(redis, { clock })
    await untilCalls(sandbox, 1)
    await vi.waitFor(() => expect(poller.status()).toMatchObject({ unitsUsed: 1, state: 'waiting' }), soon)
    clock.pass(resetMs + 10_000 - clock.now())
    await vi.waitFor(
      () => expect(poller.status()).toMatchObject({ unitsUsed: 0, resetsAtMs: resetMs + dayMs }),
      soon,
    )
    expect((await metrics.budgetUnitsUsed.get()).values).toMatchObject([{ value: 0 }])
    expect(sandbox.requests).toHaveLength(1)
  })

  it('writes one line a poll, with what came, what it cost and what follows', async () => {
    const { replica, redis, captured, sandbox } = await rig({ everyMs: 60_000 })
    replica(redis, {
      async poll(readPage) {
        const result = await pollOnePage(readPage)
        return {
          ...result,
          newAlerts: 2,
          duplicates: 1,
          fired: [{ firedAtMs: Date.now() - 9_000, passedOver: false }],
        }
      },
    })
    await untilCalls(sandbox, 1)
    await vi.waitFor(() => expect(captured.with('poll.done')).toHaveLength(1), soon)
    const [line] = captured.with('poll.done')
    expect(line).toMatchObject({
      level: 'info',
      source: 'main',
      reason: 'caught_up',
      pages: 1,
      new: 2,
      duplicates: 1,
    })
    expect(line).toMatchObject({ unitsUsed: 1, unitsLeft: 999, behind: false, nextReason: 'fixed' })
    expect(Date.parse(String(line?.['nextAt']))).toBeGreaterThan(Date.now() + 50_000)
    expect(line?.['lagMs']).toBeGreaterThanOrEqual(9_000)
  })

  it('counts calls, units and instants', async () => {
    const { replica, redis, metrics, sandbox } = await rig({ everyMs: 60_000 })
    sandbox.fault({ kind: 'status', status: 500 })
    const { poller } = replica(redis)
    await untilCalls(sandbox, 1)
    poller.pollNow()
    await untilCalls(sandbox, 2)
    const text = () => metrics.registry.metrics()
    await vi.waitFor(
      async () => expect(await text()).toMatch(/last_poll_timestamp_seconds\{source="main"\} 1/),
      soon,
    )
    const lines = await text()
    expect(lines).toContain(
      'upstream_requests_total{source="main",endpoint="alerts/deliveries",status="500"} 1',
    )
    expect(lines).toContain(
      'upstream_requests_total{source="main",endpoint="alerts/deliveries",status="200"} 1',
    )
    expect(lines).toContain('budget_units_total{source="main",purpose="poll"} 2')
    expect(lines).toContain('budget_units_limit{source="main"} 1000')
    expect(lines).toMatch(/budget_units_used\{source="main"\} [12]/)
    expect(lines).toMatch(/budget_reset_timestamp_seconds\{source="main"\} 1\d{9}/)
    expect(lines).toMatch(/next_poll_timestamp_seconds\{source="main"\} 1\d{9}/)
    expect(lines).toMatch(/polls_total\{source="main",reason="first"\} 1/)
  })

  it('goes on with what its schedule had learned, and does not poll again at once after a restart', async () => {
    const { replica, redis, sandbox } = await rig({ everyMs: 60_000 })
    await replicaUntil(replica(redis), () => untilCalls(sandbox, 1))
    const saved: unknown[] = []
    const schedule = {
      ...{ observe() {}, learnHistory() {}, learnRules() {}, setHot() {} },
      ...{ wantsRules: () => false, snapshot: () => ({}) },
    }
    const view = {
      learnedFrom: 0,
      memory: 'restored',
      firing: '',
      onMarks: false,
      announced: null,
      hotUntilMs: 0,
    } as const
    const again = replica(server.client(), {
      createSchedule(snapshot) {
        saved.push(snapshot)
        return {
          ...schedule,
          describe: () => view,
          next: (nowMs) => ({ atMs: nowMs + 60_000, reason: 'even' }),
        }
      },
    })
    await vi.waitFor(() => expect(again.poller.status().state).toBe('waiting'), soon)
    expect(saved).toEqual([{ polls: 1 }])
    expect(sandbox.requests).toHaveLength(1)
    expect(again.poller.health()).toEqual({ ok: true })
  })

  it('catches up as fast as the shortest interval allows', async () => {
    const { replica, redis, captured, reports } = await rig({
      everyMs: 60_000,
      limits: { minIntervalMs: 50 },
    })
    let polls = 0
    replica(redis, {
      async poll(readPage) {
        polls += 1
        const result = await pollOnePage(readPage)
        return polls < 5 ? { ...result, reason: 'page_limit', behind: true } : result
      },
    })
    await vi.waitFor(() => expect(captured.with('poll.done')).toHaveLength(5), soon)
    const lines = captured.with('poll.done')
    expect(lines.map(({ nextReason }) => nextReason)).toEqual([...Array(4).fill('catch_up'), 'fixed'])
    expect(Math.min(...gaps(reports))).toBeGreaterThanOrEqual(50)
  })
})

describe('a person', () => {
  it('can ask for a poll now', async () => {
    const { replica, redis, sandbox } = await rig({ everyMs: 60_000 })
    const { poller } = replica(redis)
    await untilCalls(sandbox, 1)
    await vi.waitFor(() => expect(poller.status().state).toBe('waiting'), soon)
    poller.pollNow()
    await untilCalls(sandbox, 2)
  })

  it('can make it hot from any replica', async () => {
    const { replica, redis, sandbox, prefix } = await rig({ everyMs: 60_000 })
    const { poller } = replica(redis)
    await untilCalls(sandbox, 1)
    const override = createSourceOverride({ redis: server.client(), prefix, source: 'main' })
    await override.setHot(Date.now() + 60_000, Date.now())
    // The long wait looks up now and then; a wish by hand makes it look at once.
    poller.pollNow()
    await untilCalls(sandbox, 5)
    await override.setHot(0, Date.now())
    expect(await override.hotUntilMs(Date.now())).toBe(0)
  })
})

describe('a wall clock that is set', () => {
  it.each([-dayMs, dayMs])('by %d ms costs no poll and no readiness', async (byMs) => {
    const clock = wallClock()
    const { replica, redis, sandbox } = await rig({ everyMs: 150 })
    const { poller } = replica(redis, { clock })
    await untilCalls(sandbox, 2)
    clock.turn(byMs)
    expect(poller.health()).toEqual({ ok: true })
    await untilCalls(sandbox, sandbox.requests.length + 3)
    expect(poller.health()).toEqual({ ok: true })
  })
})

describe('full queues', () => {
  it('keep the poller from asking for more', async () => {
    const { replica, redis, sandbox, captured } = await rig({ limits: { backpressureIntervalMs: 20 } })
    let full = true
    const startMs = Date.now()
    const { poller } = replica(redis, { tooManyWaiting: () => Promise.resolve(full) })
    await vi.waitFor(() => expect(poller.status().state).toBe('backpressure'), soon)
    expect(await callsDuring(sandbox, 200)).toBe(0)
    expect(captured.with('poller.state')).toHaveLength(1)
    // By this another process sees whether this one still waits.
    expect(poller.status().nextPollAtMs).toBeGreaterThan(startMs + 100)
    full = false
    await untilCalls(sandbox, 1)
  })
})

describe('a bug', () => {
  it('in the loop is told, counted and survived; until a poll goes well, the poller is not ready', async () => {
    const { replica, redis, captured, metrics } = await rig({ limits: { restartDelayMs: 200 } })
    let polls = 0
    const { poller } = replica(redis, {
      poll: (readPage) => {
        polls += 1
        return polls === 1 ? Promise.reject(new TypeError('x is undefined')) : pollOnePage(readPage)
      },
    })
    await vi.waitFor(() => expect(captured.with('poller.crashed').length).toBeGreaterThan(0), soon)
    expect(poller.health()).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/x is undefined/),
    })
    await vi.waitFor(() => expect(poller.health()).toEqual({ ok: true }), soon)
    expect(await metrics.registry.metrics()).toContain('poller_restarts_total{source="main"} 1')
  })
})

describe('stopping', () => {
  it('finishes the page it is on, and leaves the lease to the next', async () => {
    const { replica, redis, sandbox, reports, prefix } = await rig()
    sandbox.fault({ kind: 'slow', delayMs: 300 })
    const run = replica(redis)
    await untilCalls(sandbox, 1)
    await run.stop()
    expect(reports).toMatchObject([{ ok: true }])
    expect(await redis.exists(`{${prefix}}:lease:main`)).toBe(0)
    expect(await redis.exists(sourceKeys(prefix, 'main').profile)).toBe(1)
  })

  it('begins no further page', async () => {
    const { replica, redis, sandbox } = await rig()
    sandbox.fault({ kind: 'slow', delayMs: 100 })
    const answers: string[] = []
    const run = replica(redis, {
      async poll(readPage) {
        const result = await pollOnePage(readPage)
        answers.push((await readPage(2, 'walk')).kind)
        return result
      },
    })
    await untilCalls(sandbox, 1)
    await run.stop()
    expect(answers).toEqual(['failed'])
    expect(sandbox.requests).toHaveLength(1)
  })

  it('gives up a page that takes too long, without taking it for a failure of the feed', async () => {
    const { replica, redis, sandbox, reports } = await rig({ limits: { drainTimeoutMs: 100 } })
    sandbox.fault({ kind: 'hang' })
    const run = replica(redis)
    await untilCalls(sandbox, 1)
    const before = performance.now()
    await run.stop()
    expect(performance.now() - before).toBeLessThan(2_000)
    expect(reports).toEqual([])
    expect(run.poller.status().lastError).toBeNull()
  })

  it('is quick while it waits, on standby, and while Redis is away', async () => {
    const { replica, redis, sandbox } = await rig({ everyMs: 60_000 })
    const own = await startRedis()
    onTestFinished(() => own.dispose())
    const leader = replica(redis)
    await untilCalls(sandbox, 1)
    const standby = replica(server.client())
    await vi.waitFor(() => expect(standby.poller.status().state).toBe('standby'), soon)
    const lost = replica(own.client())
    await untilCalls(sandbox, 2)
    await own.kill9()
    const before = performance.now()
    await Promise.all([standby.stop(), leader.stop(), lost.stop()])
    expect(performance.now() - before).toBeLessThan(4_000)
  })
})

/** From the start of each poll to that of the next. */

function gaps(reports: readonly { atMs: number }[]): number[] {
  return reports.slice(1).map(({ atMs }, index) => atMs - (reports[index]?.atMs ?? 0))
}

async function replicaUntil(run: { stop(): Promise<void> }, done: () => Promise<void>): Promise<void> {
  await done()
  await run.stop()
}
