import { describe, expect, it, vi } from 'vitest'
import { freshPauseMs, retryOfMinute } from '../../src/poller/leader.ts'
import type { PollerDeps } from '../../src/poller/settings.ts'
import type { BudgetView, PollReport } from '../../src/schedule/schedule.ts'
import type { RedisClient } from '../../src/store/connection/redis.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { createGrantStore } from '../../src/store/ledger/grant.ts'
import { resetGuardMs } from '../../src/store/ledger/ledger-days.ts'
import { rateMinuteMs, walkRequestsOf } from '../../src/store/ledger/minute.ts'
import { passingClock } from '../support/clock.ts'
import {
  callsDuring,
  pollerRig,
  pollOnePage,
  type RigOptions,
  steadySchedule,
  untilCalls,
} from '../support/poller.ts'
import { useRedis } from '../support/redis.ts'

const server = useRedis()
const soon = { timeout: 10_000, interval: 5 }
const rig = (options: Omit<RigOptions, 'redis'> = {}) => pollerRig({ redis: server.client(), ...options })

const dayMs = 86_400_000

/** Reads on until it is refused. */
const catchUp: Pick<PollerDeps, 'poll'> = {
  async poll(readPage) {
    const result = await pollOnePage(readPage)
    let why = 'page'
    while (why === 'page') why = (await readPage(2, 'walk')).kind
    return { ...result, behind: true, reason: 'refused_budget' }
  },
}

describe('first pages while catch-ups wait for the minute', () => {
  /** Pages beneath in two hours, as the ledger counts; each quiet source of the account polls once a minute. */
  function walked(requestsPerMinute: number, { behind, quiet = 0 }: { behind: number; quiet?: number }) {
    let [minute, pages] = [[] as number[], 0]
    /** When it is to be tried again; undefined where the call is made. */
    const take = (atMs: number, requestsMax: number) => {
      minute = minute.filter((callMs) => callMs > atMs - rateMinuteMs)
      if (minute.length >= requestsMax) return (minute.at(-requestsMax) ?? 0) + rateMinuteMs
      minute.push(atMs)
      return undefined
    }
    // All begin at the same time, as when the bridge starts.
    const sources = behind + quiet
    const dueMs = Array.from({ length: sources }, () => 0)
    for (let atMs = 0; atMs < 2 * 3_600_000; atMs = Math.max(atMs + 1, Math.min(...dueMs))) {
      const due = [...dueMs.keys()].filter((at) => (dueMs[at] ?? 0) <= atMs)
      const walking = due.filter((at) => {
        const retryMs = take(atMs, requestsPerMinute)
        dueMs[at] = retryMs ?? atMs + (at < behind ? freshPauseMs(requestsPerMinute, sources) : 60_000)
        return retryMs === undefined && at < behind
      })
      const max = walkRequestsOf(requestsPerMinute, sources)
      if (walking.length > 0) while (take(atMs, max) === undefined) pages += 1
    }
    return pages
  }

  it('leave them calls, however few an account has and however many sources', () => {
    for (const requestsPerMinute of [2, 3, 4, 5, 6, 7, 8, 12, 20, 60])
      for (const behind of [1, 2, 3, 5])
        expect(walked(requestsPerMinute, { behind }), `${requestsPerMinute} for ${behind}`).toBeGreaterThan(
          30,
        )
  })

  it('leave them calls beside sources that are not behind', () => {
    for (const [requestsPerMinute, quiet] of [
      [3, 1],
      [4, 2],
      [5, 3],
      [12, 9],
      [60, 4],
    ] as const)
      expect(walked(requestsPerMinute, { behind: 1, quiet }), `${requestsPerMinute}`).toBeGreaterThan(10)
  })

  it('are read every five seconds for one source that has 20 calls or more', () => {
    const pauses = [2, 12, 20, 200].map((requests) => Math.round(freshPauseMs(requests, 1) / 100) * 100)
    expect(pauses).toEqual([60_600, 10_100, 5_000, 5_000])
  })
})

it.each([
  [2, 3, 60_000],
  [2, 5, 60_000],
  [6, 8, 10_000],
  [12, 13, 5_000],
])(
  'a minute of %d requests serves %d sources in turns, each of which would fill it or more with the others',
  (requests, sources, everyMs) => {
    let minute: number[] = []
    const state = Array.from({ length: sources }, () => ({ dueMs: 0, refusals: 0, lastMs: 0, longestMs: 0 }))
    // Whoever is due at the same time is served in the same order, which is as unfair as it can be.
    for (
      let atMs = 0;
      atMs < 3_600_000;
      atMs = Math.max(atMs + 1, Math.min(...state.map(({ dueMs }) => dueMs)))
    )
      for (const source of state.filter(({ dueMs }) => dueMs <= atMs)) {
        minute = minute.filter((callMs) => callMs > atMs - rateMinuteMs)
        if (minute.length >= requests) {
          source.refusals += 1
          source.dueMs = retryOfMinute((minute.at(-requests) ?? 0) + rateMinuteMs, source.refusals)
          continue
        }
        minute.push(atMs)
        source.longestMs = Math.max(source.longestMs, atMs - source.lastMs)
        ;[source.lastMs, source.refusals, source.dueMs] = [atMs, 0, atMs + everyMs]
      }
    const fairMs = (sources * rateMinuteMs) / requests
    for (const { longestMs, lastMs } of state) {
      expect(longestMs).toBeLessThan(2.5 * fairMs)
      expect(lastMs).toBeGreaterThan(3_600_000 - 2.5 * fairMs)
    }
  },
)

describe('a limit of the feed', () => {
  it('is waited for exactly as a 429 says, by every replica, and told once', async () => {
    const { replica, redis, sandbox, ledger, captured, metrics, reports } = await rig()
    sandbox.fault({ kind: 'status', status: 429, retryAfter: '2' })
    replica(redis)
    replica(server.client())
    await vi.waitFor(async () => expect(await ledger.currentHold()).toBeDefined(), soon)
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

  it('that leaves room for one call at a time lets a catch-up collect some: the head would take each', async () => {
    const { replica, redis, sandbox, ledger } = await rig()
    replica(redis, {
      ledger: {
        ...ledger,
        async reserve(request) {
          if (request.purpose === 'poll') return ledger.reserve(request)
          return { ok: false, limit: 'minute', held: false, retryAtMs: Date.now() + 100, unitsUsed: 0 }
        },
      },
      poll: async (readPage) => {
        const result = await pollOnePage(readPage)
        await readPage(2, 'walk')
        return { ...result, behind: true, reason: 'refused_minute' }
      },
    })
    await untilCalls(sandbox, 2)
    const [first, second] = sandbox.requests
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(4_500)
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
    const nowMs = Date.now()
    const day = { key: 'today', startMs: nowMs - dayMs / 2, endMs: nowMs + dayMs / 2 }
    const { replica, redis, sandbox, ledger } = await rig({ budgetDay: () => day })
    sandbox.fault(fault)
    const reports: PollReport[] = []
    const plannedMs = nowMs + dayMs / 3
    const next = () => ({ atMs: sandbox.requests.length > 0 ? plannedMs : 0, reason: 'floor' }) as const
    const { poller } = replica(redis, {
      createSchedule: () => ({ ...steadySchedule({}, 0, reports), next }),
      poll: async (readPage) => ({ ...(await pollOnePage(readPage)), behind: true }),
    })
    await untilCalls(sandbox, 1)
    await vi.waitFor(async () => expect(await ledger.currentHold()).toMatchObject({ limit }), soon)
    const leftMs = ((await ledger.currentHold())?.untilMs ?? 0) - Date.now()
    expect(leftMs).toBeGreaterThan(waitMs - 5_000)
    expect(leftMs).toBeLessThan(waitMs + 1_000)
    expect(sandbox.requests).toHaveLength(1)
    await vi.waitFor(() => expect(poller.status().state).toBe('held'), soon)
    // The first poll after the reset is that of the plan, and no further try of one that failed.
    expect(reports).toHaveLength(limit === 'budget' ? 0 : 1)
    // Unless rows are known to wait: no poll of this day has read any of them.
    const heldMs = nowMs + waitMs + 5_000
    const nextMs = limit === 'budget' ? heldMs : Math.max(plannedMs, heldMs)
    expect(Math.abs((poller.status().nextPollAtMs ?? 0) - nextMs)).toBeLessThan(5_100)
  })

  it('of ours is waited for, and no interval beside: no call was made', async () => {
    const { replica, redis, sandbox, ledger } = await rig({
      everyMs: 60_000,
      limits: { minIntervalMs: 60_000 },
    })
    let asked = 0
    replica(redis, {
      ledger: {
        ...ledger,
        async reserve(request) {
          asked += 1
          if (asked > 1) return ledger.reserve(request)
          return { ok: false, limit: 'minute', held: false, retryAtMs: Date.now() + 100, unitsUsed: 0 }
        },
      },
    })
    await untilCalls(sandbox, 1)
    expect(await callsDuring(sandbox, 300)).toBe(0)
    expect(asked).toBe(2)
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
    const firstMs = resetMs + resetGuardMs + 300
    // What is drawn for the next day while units are spent may change with them.
    const drawnMs = firstMs + 6_000
    const next = (nowMs: number, { unitsLeft }: BudgetView) => {
      const spentMs = unitsLeft > 0 ? nowMs : drawnMs
      return { atMs: nowMs < resetMs ? spentMs : Math.max(nowMs, firstMs), reason: 'even' } as const
    }
    const { poller } = replica(redis, { createSchedule: () => ({ ...steadySchedule(), next }) })
    await untilCalls(sandbox, 6)
    await vi.waitFor(() => expect(poller.status().state).toBe('budget_spent'), soon)
    expect(poller.health()).toEqual({ ok: true })
    expect(poller.status()).toMatchObject({ unitsUsed: 6, nextPollAtMs: drawnMs })
    // Not at the reset, but where the plan of the new day wants it.
    await untilCalls(sandbox, 7)
    expect(sandbox.requests[6]?.atMs).toBeGreaterThanOrEqual(firstMs)
    expect(sandbox.requests[6]?.atMs).toBeLessThan(drawnMs)
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

describe('pages that no poll waits for', () => {
  const endOfDay = (nowMs: number) => ({
    ...{ key: 'today', startMs: nowMs - 86_000_000, endMs: nowMs + 15 * 60_000 },
  })
  const swept = { reason: 'units_spent', newAlerts: 0, quarantined: 0, depth: 100 } as const
  /** Reads on until it is refused. */
  const sweep: PollerDeps['sweep'] = async (readPage, pagesMax) => {
    for (let pages = 0; pages < pagesMax; pages += 1) {
      const answer = await readPage(pages + 2, 'sweep')
      if (answer.kind === 'refused') return { ...swept, reason: `refused_${answer.why}`, pages }
    }
    return { ...swept, pages: pagesMax }
  }
  /** A minute passes for the ledger, which counts it by Redis' clock. */
  async function passMinute(redis: RedisClient, prefix: string) {
    const { minute } = sourceKeys(prefix, 'main')
    const asked = await redis.zrange(minute, '0', '-1')
    await Promise.all(asked.map((request) => redis.zincrby(minute, String(-rateMinuteMs), request)))
  }

  it('are read with what polls leave of each minute, on and on: a sweep ends with its share of the day', async () => {
    const clock = passingClock()
    const { replica, redis, prefix, sandbox, ledger } = await rig({
      ...{ everyMs: 10 * 60_000, requestsPerMinute: 12, budgetDay: endOfDay, limits: { sweepShare: 0.009 } },
    })
    const { poller } = replica(redis, { sweep, clock })
    // Of twelve a third, of which the poll took one; then four a minute until its nine are spent.
    for (const calls of [4, 8, 10, 10]) {
      await untilCalls(sandbox, calls)
      expect(await callsDuring(sandbox, 200)).toBe(0)
      expect(sandbox.requests).toHaveLength(calls)
      await passMinute(redis, prefix)
      clock.pass(rateMinuteMs + 1_000)
    }
    expect(poller.status().state).toBe('waiting')
    expect((await ledger.used({ key: 'today', startMs: 0, endMs: 0 })).byPurpose).toEqual({
      poll: 1,
      sweep: 9,
    })
  })

  it('are not begun once a poll is due, or asked for', async () => {
    const { replica, redis, sandbox } = await rig({ everyMs: 60_000, budgetDay: endOfDay })
    const asked: string[] = []
    const { poller } = replica(redis, {
      async sweep(readPage) {
        if (asked.length > 1) return { ...swept, reason: 'round_done', pages: 0 }
        poller.pollNow()
        const answer = await readPage(2, 'sweep')
        asked.push(answer.kind === 'refused' ? answer.why : answer.kind)
        return {
          ...swept,
          reason: answer.kind === 'refused' ? `refused_${answer.why}` : 'units_spent',
          pages: 0,
        }
      },
    })
    await untilCalls(sandbox, 3)
    expect(asked).toEqual(['rest', 'rest'])
    expect(sandbox.requests.map(({ page }) => page)).toEqual([1, 1, 1])
  })

  it('of the past go on in the next minute, too, and are no more for it', async () => {
    const clock = passingClock()
    const { replica, redis, prefix, sandbox, captured } = await rig({
      ...{
        everyMs: 10 * 60_000,
        requestsPerMinute: 12,
        limits: { historyPages: 6 },
        sandbox: { history: 900 },
      },
    })
    replica(redis, { clock })
    await untilCalls(sandbox, 4)
    expect(await callsDuring(sandbox, 200)).toBe(0)
    await passMinute(redis, prefix)
    clock.pass(rateMinuteMs + 1_000)
    await untilCalls(sandbox, 7)
    await passMinute(redis, prefix)
    clock.pass(rateMinuteMs + 1_000)
    expect(await callsDuring(sandbox, 200)).toBe(0)
    expect(sandbox.requests.map(({ page }) => page)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(captured.with('poll.history')).toMatchObject([{ pages: 3 }, { pages: 3 }])
  })
})

describe('units that a source with a learned pace has, too', () => {
  it.each([
    [0, [5]],
    [1, []],
  ])(
    'go into a sweep only where such sources, of which there are %d, need them not',
    async (beside, taken) => {
      const { replica, redis, sandbox, ledger } = await rig({
        everyMs: 60_000,
        budgetDay: (nowMs) => ({ key: 'today', startMs: nowMs - 86_000_000, endMs: nowMs + 15 * 60_000 }),
      })
      // For 15 polls of its own, and as many of the other.
      await ledger.reserve({ cost: 1_000 - 31, purpose: 'poll' })
      const sweeps: number[] = []
      replica(redis, {
        planners: () => beside,
        async sweep(_, pagesMax) {
          sweeps.push(pagesMax)
          return { reason: 'round_done', pages: 0, newAlerts: 0, quarantined: 0, depth: 100 }
        },
      })
      await untilCalls(sandbox, 1)
      await vi.waitFor(() => expect(sweeps).toHaveLength(taken.length), soon)
      expect(await callsDuring(sandbox, 200)).toBe(0)
      expect(sweeps).toEqual(taken)
    },
  )
})

describe('the units of the day', () => {
  it('are left to the head by half once a day, also over a restart in the middle of a catch-up', async () => {
    const { replica, redis, ledger } = await rig({ limits: { unitsPerDay: 60 }, everyMs: 1_000 })
    const day = { key: 'today', startMs: 0, endMs: 0 }
    const first = replica(redis, catchUp)
    await vi.waitFor(() => expect(first.poller.status()).toMatchObject({ behind: true, unitsUsed: 30 }), soon)
    await first.stop()
    const next = replica(redis, catchUp)
    await vi.waitFor(() => expect(next.poller.status().unitsUsed).toBeGreaterThan(30), soon)
    expect((await ledger.used(day)).byPurpose).toMatchObject({ walk: 29 })
  })

  it("are left to the head by half, of the configured day, too, where the API's own has just begun and a backlog waits", async () => {
    const nowMs = Date.now()
    const day = { key: 'today', startMs: nowMs - dayMs / 2, endMs: nowMs + dayMs / 2 }
    const { replica, redis, sandbox, ledger } = await rig({
      ...{ limits: { unitsPerDay: 60 }, everyMs: dayMs, budgetDay: () => day },
    })
    await ledger.reserve({ cost: 30, purpose: 'api' })
    await ledger.countApiDay({ atMs: nowMs - 60_000, used: 0 })
    const { poller } = replica(redis, catchUp)
    await vi.waitFor(() => expect(poller.status().behind).toBe(true), soon)
    expect(sandbox.requests).toHaveLength(15)
  })

  it("are those of the API's own day where it told of another one, also while a poll runs", async () => {
    const { replica, redis, ledger, metrics } = await rig()
    await ledger.reserve({ cost: 30, purpose: 'api' })
    await ledger.countApiDay({ atMs: Date.now() - dayMs / 2, used: 7 })
    const seen: number[] = []
    const { poller } = replica(redis, {
      async poll(readPage) {
        const result = await pollOnePage(readPage)
        seen.push(...(await metrics.budgetUnitsUsed.get()).values.map(({ value }) => value))
        return result
      },
    })
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(1), soon)
    expect(seen.slice(0, 2)).toEqual([8, 9])
    // What they were spent for is of the same day.
    await vi.waitFor(() => expect(poller.status().byPurpose).toEqual({ poll: expect.any(Number) }), soon)
  })
})

it('the gauge of the units that the plan is made with follows the plan from day to day', async () => {
  const { replica, redis, prefix, sandbox, metrics } = await rig()
  const learnedAtMs = Date.now() - 60 * dayMs
  // Refused after two sizes, and never since: the plan has had all units again for weeks.
  const refused = { atMs: learnedAtMs, units: 400, sizes: 2 }
  await createGrantStore({ redis, prefix, source: 'main' }).save({
    ...{ v: 1, unitsPerDay: 400, resetsAtMs: null, learnedAtMs, refused },
  })
  const { poller } = replica(redis)
  await untilCalls(sandbox, 1)
  expect(poller.status()).toMatchObject({ unitsPerDay: 1_000, lesson: null })
  expect((await metrics.budgetUnitsLearned.get()).values).toMatchObject([{ value: 1_000 }])
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
