import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sourceKeys } from '../../src/store/keys.ts'
import { resetGuardMs } from '../../src/store/ledger.ts'
import { createSourceOverride } from '../../src/store/source-override.ts'
import { createSourceStatus } from '../../src/store/source-status.ts'
import { wallClock } from '../support/clock.ts'
import {
  callsDuring,
  pollerRig,
  pollOnePage,
  pollResult,
  type RigOptions,
  untilCalls,
} from '../support/poller.ts'
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
    expect(reports[0]).toMatchObject({ ok: true, pages: 1, behind: false })
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
    const schedule = { observe() {}, learnHistory() {}, setHot() {}, snapshot: () => ({}) }
    const view = { learnedFrom: 0, memory: 'restored', firing: '', onMarks: false, hotUntilMs: 0 } as const
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

describe('a limit of the feed', () => {
  it('is waited for exactly as a 429 says, by every replica, and told once', async () => {
    const { replica, redis, sandbox, ledger, captured, metrics, reports } = await rig()
    sandbox.fault({ kind: 'status', status: 429, retryAfter: '2' })
    replica(redis)
    replica(server.client())
    await vi.waitFor(async () => expect(await ledger.held()).toBeDefined(), soon)
    expect(await ledger.reserve({ cost: 1, purpose: 'context' })).toMatchObject({
      limit: 'minute',
      held: true,
    })
    await untilCalls(sandbox, 2)
    const [refused, next] = sandbox.requests
    expect((next?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(2_000)
    await vi.waitFor(() => expect(captured.with('poller.resumed')).toMatchObject([{ after: 'held' }]), soon)
    expect(captured.with('poller.state')).toMatchObject([
      { state: 'held', reason: expect.stringMatching(/per-minute/) },
    ])
    expect(reports[0]).toMatchObject({ ok: false })
    expect(await metrics.registry.metrics()).toContain(
      'upstream_rate_limited_total{source="main",limit="minute"} 1',
    )
  })

  it.each<
    [string, Parameters<Awaited<ReturnType<typeof rig>>['sandbox']['fault']>[0], 'minute' | 'budget', number]
  >([
    [
      'a minute without a readable Retry-After',
      { kind: 'status', status: 429, retryAfter: 'soon' },
      'minute',
      60_000,
    ],
    [
      'an hour for a budget that names no time',
      { kind: 'status', status: 429, detail: { retryAfter: 'later' } },
      'budget',
      3_600_000,
    ],
    [
      'three hours where it says so',
      { kind: 'status', status: 429, detail: { retryAfter: 10_800 } },
      'budget',
      10_800_000,
    ],
    [
      'a day where it says a year',
      { kind: 'status', status: 429, retryAfter: '31536000' },
      'minute',
      25 * 3_600_000,
    ],
  ])('holds for %s', async (_, fault, limit, waitMs) => {
    const { replica, redis, sandbox, ledger } = await rig()
    sandbox.fault(fault)
    replica(redis)
    await untilCalls(sandbox, 1)
    await vi.waitFor(async () => expect(await ledger.held()).toMatchObject({ limit }), soon)
    const leftMs = ((await ledger.held())?.untilMs ?? 0) - Date.now()
    expect(leftMs).toBeGreaterThan(waitMs - 5_000)
    expect(leftMs).toBeLessThan(waitMs + 1_000)
    expect(sandbox.requests).toHaveLength(1)
  })

  it('of ours is never exceeded: the minute has its requests and no more', async () => {
    const { replica, redis, sandbox } = await rig({ everyMs: 0, requestsPerMinute: 5 })
    const { poller } = replica(redis)
    await untilCalls(sandbox, 5)
    expect(await callsDuring(sandbox, 300)).toBe(0)
    await vi.waitFor(() => expect(poller.status().nextPollAtMs).toBeGreaterThan(Date.now() + 50_000), soon)
  })
})

describe('the budget', () => {
  it('is spent to the last unit and not beyond, until the day turns', async () => {
    // All six are spent before a call could count on either side of the reset.
    const resetMs = Date.now() + resetGuardMs + 800
    const { replica, redis, sandbox, captured } = await rig({
      everyMs: 0,
      limits: { unitsPerDay: 6 },
      budgetDay: (nowMs) =>
        nowMs < resetMs
          ? { key: 'today', startMs: resetMs - 86_400_000, endMs: resetMs }
          : { key: 'tomorrow', startMs: resetMs, endMs: resetMs + 86_400_000 },
    })
    const { poller } = replica(redis)
    await untilCalls(sandbox, 6)
    await vi.waitFor(() => expect(poller.status().state).toBe('budget_spent'), soon)
    expect(poller.health()).toEqual({ ok: true })
    expect(poller.status()).toMatchObject({ unitsUsed: 6, nextPollAtMs: resetMs + resetGuardMs })
    await untilCalls(sandbox, 7)
    expect(sandbox.requests[6]?.atMs).toBeGreaterThanOrEqual(resetMs + resetGuardMs)
    expect(sandbox.requests[5]?.atMs).toBeLessThan(resetMs)
    expect(captured.with('poller.state')).toMatchObject([{ state: 'budget_spent' }])
  })

  it('pays for failed calls too', async () => {
    const { replica, redis, sandbox, ledger } = await rig({ limits: { unitsPerDay: 3 } })
    sandbox.fault({ kind: 'status', status: 500, times: 0 })
    const { poller } = replica(redis)
    await vi.waitFor(() => expect(poller.status().state).toBe('budget_spent'), soon)
    expect(sandbox.requests).toHaveLength(3)
    expect(await ledger.used({ key: 'today', startMs: 0, endMs: 0 })).toEqual({
      used: 3,
      byPurpose: { poll: 3 },
    })
  })
})

describe('a failing feed', () => {
  it.each<Parameters<Awaited<ReturnType<typeof rig>>['sandbox']['fault']>[0]>([
    { kind: 'status', status: 503, times: 2 },
    { kind: 'html', times: 2 },
    { kind: 'cut', times: 2 },
  ])('of $kind is tried again, and named', async (fault) => {
    const { replica, redis, sandbox, reports } = await rig()
    sandbox.fault(fault)
    const { poller } = replica(redis)
    // Good polls go on: on a busy machine several are done before anybody looks.
    await vi.waitFor(
      () => expect(reports.slice(0, 3).map(({ ok }) => ok)).toEqual([false, false, true]),
      soon,
    )
    expect(poller.status().lastError?.code).toMatch(/server_error|not_json|connection_lost/)
  })

  it('is asked less and less often', async () => {
    const { replica, redis, sandbox } = await rig({ everyMs: 0 })
    sandbox.fault({ kind: 'status', status: 500, times: 0 })
    const { poller } = replica(redis)
    await untilCalls(sandbox, 4)
    await vi.waitFor(() => expect(poller.status().nextPollAtMs).toBeGreaterThan(Date.now() + 2_000), soon)
    expect(await callsDuring(sandbox, 300)).toBe(0)
    expect(poller.health()).toEqual({ ok: true })
  })

  it('with a token that is refused stops at a slow pace, says so once, and resumes when it is right', async () => {
    const { replica, redis, sandbox, captured } = await rig({
      everyMs: 0,
      limits: { stoppedIntervalMs: 150 },
    })
    sandbox.setTokenState('revoked')
    const { poller } = replica(redis)
    await untilCalls(sandbox, 3)
    const [first, second] = sandbox.requests
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(140)
    await vi.waitFor(() => expect(poller.status().state).toBe('stopped'), soon)
    expect(poller.status().reason).toMatch(/does not accept the token/)
    expect(poller.health()).toEqual({ ok: true })
    expect(captured.with('poller.state')).toMatchObject([{ level: 'error', state: 'stopped' }])
    sandbox.setTokenState('valid')
    await vi.waitFor(
      () => expect(captured.with('poller.resumed')).toMatchObject([{ after: 'stopped' }]),
      soon,
    )
    expect(captured.with('poller.state')).toHaveLength(1)
  })

  it("that shows a stranger's rows stops", async () => {
    const { replica, redis } = await rig()
    const { poller } = replica(redis, {
      poll: async (readPage) => ({ ...(await pollOnePage(readPage)), ok: false, stopped: 'strangers_feed' }),
    })
    await vi.waitFor(() => expect(poller.status()).toMatchObject({ state: 'stopped' }), soon)
    expect(poller.status().reason).toMatch(/another feed/)
  })
})

describe('units that would expire', () => {
  it('go into a sweep of the feed, a round a day, without a poll being late', async () => {
    const { replica, redis, sandbox, reports, ledger } = await rig({
      everyMs: 60_000,
      budgetDay: (nowMs) => ({ key: 'today', startMs: nowMs - 86_000_000, endMs: nowMs + 15 * 60_000 }),
    })
    const sweeps: number[] = []
    replica(redis, {
      async sweep(readPage, pagesMax) {
        sweeps.push(pagesMax)
        const answer = await readPage(2, 'sweep')
        const nothing = { pages: 1, newAlerts: 0, quarantined: 0, depth: 100 }
        return {
          ...nothing,
          reason: answer.kind === 'page' && sweeps.length > 1 ? 'round_done' : 'units_spent',
        }
      },
    })
    await untilCalls(sandbox, 3)
    expect(await callsDuring(sandbox, 200)).toBe(0)
    expect(sweeps).toEqual([5, 5])
    expect(sandbox.requests.map(({ page }) => page)).toEqual([1, 2, 2])
    expect(reports).toHaveLength(1)
    const { byPurpose } = await ledger.used({ key: 'today', startMs: 0, endMs: 0 })
    expect(byPurpose).toEqual({ poll: 1, sweep: 2 })
  })
})

describe('the units of the day', () => {
  it("are those of the API's own day where it told of another one, also while a poll runs", async () => {
    const { replica, redis, ledger, metrics } = await rig()
    await ledger.countFrom({ atMs: Date.now() - dayMs / 2, used: 7 })
    const seen: number[] = []
    replica(redis, {
      async poll(readPage) {
        const result = await pollOnePage(readPage)
        seen.push(...(await metrics.budgetUnitsUsed.get()).values.map(({ value }) => value))
        return result
      },
    })
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(1), soon)
    expect(seen.slice(0, 2)).toEqual([8, 9])
  })
})

describe('the share of a day that sweeps may spend', () => {
  it('is all that they spend', async () => {
    const { replica, redis, sandbox, ledger } = await rig({
      everyMs: 60_000,
      budgetDay: (nowMs) => ({ key: 'today', startMs: nowMs - 86_000_000, endMs: nowMs + 15 * 60_000 }),
      limits: { sweepShare: 0.006 },
    })
    const sweeps: number[] = []
    replica(redis, {
      async sweep(readPage, pagesMax) {
        sweeps.push(pagesMax)
        for (let page = 2; page < 2 + pagesMax; page += 1) await readPage(page, 'sweep')
        return { reason: 'units_spent', pages: pagesMax, newAlerts: 0, quarantined: 0, depth: 100 }
      },
    })
    await untilCalls(sandbox, 7)
    expect(await callsDuring(sandbox, 200)).toBe(0)
    expect(sweeps).toEqual([5, 1])
    const { byPurpose } = await ledger.used({ key: 'today', startMs: 0, endMs: 0 })
    expect(byPurpose).toEqual({ poll: 1, sweep: 6 })
  })
})

describe('several replicas', () => {
  it('poll as one, and another takes over when that one ends', async () => {
    const { replica, redis, sandbox } = await rig({ limits: { leaseTtlMs: 600 } })
    const first = replica(redis)
    await untilCalls(sandbox, 1)
    const second = replica(server.client())
    await vi.waitFor(() => expect(second.poller.status().state).toBe('standby'), soon)
    expect(second.poller.health()).toEqual({ ok: true })
    expect(second.poller.status().reason).toMatch(
      /^another replica polls \(.+, process \d+, running since .+\); its lease ends at .+ unless it is renewed$/,
    )
    await first.stop()
    const calls = sandbox.requests.length
    await untilCalls(sandbox, calls + 1)
    expect(second.poller.status().state).not.toBe('standby')
  })

  it('of which one lost its lease in the middle of a walk read no further page', async () => {
    const { replica, redis, sandbox, prefix, captured } = await rig({ everyMs: 60_000 })
    const answers: unknown[] = []
    replica(redis, {
      async poll(readPage) {
        const result = await pollOnePage(readPage)
        if (answers.length > 0) return result
        await redis.set(`{${prefix}}:lease:main`, 'another', 'PX', 60_000)
        answers.push(await readPage(2, 'walk'))
        return pollResult({ reason: 'refused_lease', ok: true, pages: 1 })
      },
    })
    await vi.waitFor(() => expect(answers).toEqual([{ kind: 'refused', why: 'lease' }]), soon)
    expect(sandbox.requests).toHaveLength(1)
    await vi.waitFor(() => expect(captured.with('poller.lease_lost')).toHaveLength(1), soon)
  })
})

describe('Redis', () => {
  it('going away pauses the poller without a call, is told once, and its return ends the pause', async () => {
    const own = await startRedis({ aof: true })
    onTestFinished(() => own.dispose())
    const { replica, sandbox, captured } = await pollerRig({
      redis: own.client(),
      limits: { leaseTtlMs: 1_000 },
    })
    const { poller } = replica(own.client())
    await untilCalls(sandbox, 2)
    await own.kill9()
    await vi.waitFor(() => expect(poller.status().state).toBe('redis_down'), soon)
    expect(poller.health()).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/Redis is away/),
    })
    // What was reserved before the crash may still be on its way.
    await vi.waitFor(async () => expect(await callsDuring(sandbox, 100)).toBe(0), soon)
    expect(await callsDuring(sandbox, 1_500)).toBe(0)
    await own.start()
    const calls = sandbox.requests.length
    await untilCalls(sandbox, calls + 2)
    await vi.waitFor(() => expect(captured.with('poller.resumed')).toHaveLength(1), soon)
    expect(captured.with('poller.state')).toMatchObject([{ level: 'warn', state: 'redis_down' }])
    expect(poller.health()).toEqual({ ok: true })
  })

  it('that takes no more writes costs no units', async () => {
    const own = await startRedis()
    onTestFinished(() => own.dispose())
    const { replica, sandbox, redis } = await pollerRig({ redis: own.client() })
    const { poller } = replica(own.client())
    await untilCalls(sandbox, 1)
    await redis.config('SET', 'maxmemory', '1')
    await vi.waitFor(() => expect(poller.status().state).toBe('redis_down'), soon)
    expect(poller.status().reason).toMatch(/OOM/)
    expect(await callsDuring(sandbox, 500)).toBe(0)
    await redis.config('SET', 'maxmemory', '0')
    const calls = sandbox.requests.length
    await untilCalls(sandbox, calls + 1)
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
    const { poller } = replica(redis, { tooManyWaiting: () => Promise.resolve(full) })
    await vi.waitFor(() => expect(poller.status().state).toBe('backpressure'), soon)
    expect(await callsDuring(sandbox, 200)).toBe(0)
    expect(captured.with('poller.state')).toHaveLength(1)
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
