import { toError } from '../lib/errors.ts'
import type { BudgetDay, BudgetView } from '../schedule/schedule.ts'
import { isRedisAway, redisErrorText } from '../store/connection/redis-errors.ts'
import { createGrantStore } from '../store/ledger/grant.ts'
import { type Lease, LeaseLost, leaseRetryMs, newTaker } from '../store/source/lease.ts'
import { createScheduleState, type ScheduleState } from '../store/source/schedule-state.ts'
import { createSourceOverride, type SourceOverride } from '../store/source/source-override.ts'
import { createSourceStatus, type PollerStatus } from '../store/source/source-status.ts'
import { learnAnnounced } from './announcements.ts'
import { GrantedBudget, shareOf } from './budget.ts'
import { healthOf, hungOf, type LoopActivity } from './health.ts'
import { applyResult, describeFailure, keepForHead, type Leader, newLeader, takeLease } from './leader.ts'
import { decideNextPoll, type NextPoll, untilDayIsOver } from './next-poll.ts'
import { logPoll } from './poll-log.ts'
import { hasOtherToken, type ReaderWork, withReader } from './reader.ts'
import { type Poller, type PollerDeps, type PollerHealth, pauses, withDefaults } from './settings.ts'
import { sweepShareLeft } from './spare.ts'
import { buyHistory, spareRestMs, sweepOn } from './spare-pages.ts'
import { PollerView } from './status.ts'

/**
 * The loop around the walk: take the lease, wait for the planned instant, poll, learn, report, again. It spends nothing
 * while Redis is away, in the pause after a 429 or without the lease; it never ends, and its status says why it waits.
 */
export function createPoller(deps: PollerDeps): Poller {
  return new SourcePoller(deps)
}

class SourcePoller implements Poller {
  readonly source: string
  readonly #deps: PollerDeps & {
    readonly limits: ReturnType<typeof withDefaults>
    readonly granted: GrantedBudget
  }
  readonly #view: PollerView
  readonly #state: ScheduleState
  readonly #override: SourceOverride
  #wake = new AbortController()
  #pollRequested = false
  #crash: string | undefined
  /** By the monotonic clock. */
  #activity: Pick<LoopActivity, 'actedAtMs' | 'dueAtMs'> = { actedAtMs: 0, dueAtMs: 0 }

  constructor(deps: PollerDeps) {
    this.source = deps.source
    const granted = new GrantedBudget({ ...deps, ...deps.limits }, createGrantStore(deps))
    this.#deps = { ...deps, limits: withDefaults(deps.limits), granted }
    this.#view = new PollerView(deps, createSourceStatus(deps))
    this.#state = createScheduleState(deps)
    this.#override = createSourceOverride(deps)
    this.#markActive()
  }

  status(): PollerStatus {
    return this.#view.status
  }

  health(): PollerHealth {
    return healthOf(this.#loopActivity(), this.#deps.clock.monotonicMs())
  }

  hung(): string | undefined {
    return hungOf(this.#loopActivity(), this.#deps.clock.monotonicMs())
  }

  #loopActivity(): LoopActivity {
    return { ...this.#activity, status: this.#view.status, crash: this.#crash }
  }

  pollNow(): void {
    this.#pollRequested = true
    this.#wake.abort(new Error('a poll was asked for'))
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, metrics, source, limits } = this.#deps
    let pauseMs = 0
    while (!signal.aborted) {
      try {
        await this.#pollWhileLeader(signal)
      } catch (thrown) {
        if (signal.aborted) break
        if (thrown instanceof LeaseLost) {
          log.warn({ source, reason: thrown.message }, 'poller.lease_lost')
          continue
        }
        // A bug: what is stored is consistent at every instant, so that starting again is safe.
        if (this.#crash === undefined) pauseMs = limits.restartDelayMs
        this.#crash = toError(thrown).message
        metrics.pollerRestarts.inc({ source })
        log.error({ source, err: thrown, pauseMs }, 'poller.crashed')
        log.debug({ source, stack: toError(thrown).stack }, 'poller.crashed')
        await this.#sleep(pauseMs, signal)
        pauseMs = Math.min(pauseMs * 2, pauses.restartMsMax)
      }
    }
  }

  async #pollWhileLeader(signal: AbortSignal): Promise<void> {
    const lease = await this.#acquire(signal)
    if (!lease) return
    try {
      const leader = await this.#startLeading(lease, signal)
      while (leader && !signal.aborted) await this.#iterate(leader, signal)
    } finally {
      await lease.release()
    }
  }

  async #acquire(signal: AbortSignal): Promise<Lease | undefined> {
    const { leaseTtlMs: ttlMs } = this.#deps.limits
    const taker = newTaker()
    while (!signal.aborted) {
      try {
        const lease = await takeLease(this.#deps, { ttlMs, taker })
        if (typeof lease !== 'string') return lease
        this.#view.enter('standby', lease)
        await this.#deps.onStandby()
        await this.#sleep(leaseRetryMs(ttlMs), signal)
      } catch (thrown) {
        await this.#pauseForRedis(thrown, signal)
      }
    }
    return undefined
  }

  async #startLeading(lease: Lease, signal: AbortSignal): Promise<Leader | undefined> {
    while (!signal.aborted) {
      try {
        lease.check()
        await Promise.all([this.#view.restore(), this.#deps.granted.load()])
        const schedule = this.#deps.createSchedule(await this.#state.load())
        return newLeader(lease, schedule, this.#view.status)
      } catch (thrown) {
        await this.#pauseForRedis(thrown, signal)
      }
    }
    return undefined
  }

  async #iterate(leader: Leader, signal: AbortSignal): Promise<void> {
    try {
      leader.lease.check()
      const { nextPoll, budget, shareLeft } = await this.#decide(leader)
      await this.#view.save()
      const { behind } = this.#view.status
      const spare = {
        leader,
        nextPoll,
        budget: { ...budget, shareLeft },
        behind,
        isPollAsked: () => this.#pollRequested,
        withReader: <T>(work: ReaderWork<T>) => this.#withReader(leader, signal, work),
      }
      if (await buyHistory(this.#deps, this.#state, spare)) return
      if (await learnAnnounced(this.#deps, this.#view, { ...leader, nextPoll, budget, behind, signal }))
        return
      if (await sweepOn(this.#deps, spare)) return
      if (!(await this.#waitFor(nextPoll, leader, budget.day, signal))) return
      if (await this.#waitForRoom(leader, signal)) return
      await this.#poll(leader, signal)
      // After a shutdown there is no next instant, so the line is written here.
      if (signal.aborted) this.#logPoll(leader)
    } catch (thrown) {
      await this.#pauseForRedis(thrown, signal)
    }
  }

  async #decide(leader: Leader): Promise<{ nextPoll: NextPoll; budget: BudgetView; shareLeft: number }> {
    const { clock, ledger, limits, granted } = this.#deps
    const hotUntilMs = await this.#override.hotUntilMs(clock.now())
    if (hotUntilMs !== leader.hotUntilMs) leader.schedule.setHot(hotUntilMs)
    leader.hotUntilMs = hotUntilMs
    const nowMs = clock.now()
    leader.decidedMs = nowMs
    const available = await granted.available(nowMs)
    const budget = shareOf(available.budget, nowMs, this.#deps.share)
    keepForHead(leader, available, { ...this.#deps, nowMs, behind: this.#view.status.behind })
    const nextPoll = decideNextPoll({
      ...leader,
      ...limits,
      nowMs,
      decision: leader.schedule.next(nowMs, budget),
      ...budget,
      hold: await ledger.currentHold(),
      pollRequested: this.#pollRequested,
      behind: this.#view.status.behind,
    })
    this.#view.plan(nextPoll, { ...available, ...leader }, leader.schedule.describe(nowMs))
    this.#logPoll(leader)
    return { nextPoll, budget, shareLeft: sweepShareLeft(available, limits.sweepShare) }
  }

  /** True at the planned instant; false when everything has to be decided again, or the loop ends. */
  async #waitFor(nextPoll: NextPoll, leader: Leader, day: BudgetDay, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps
    for (let seenMs = leader.decidedMs; ; ) {
      leader.lease.check()
      const nowMs = clock.now()
      if (signal.aborted || nowMs < seenMs) return false
      const dayLeftMs = untilDayIsOver(leader, day, nowMs)
      if (dayLeftMs === 0) return false
      if (nowMs >= nextPoll.atMs) return true
      if (hasOtherToken(leader, this.#deps.feed)) return false
      seenMs = nowMs
      const restMs = spareRestMs(leader, clock)
      if (restMs <= 0) return false
      const ends = AbortSignal.any([signal, leader.lease.lost])
      await this.#sleep(Math.min(nextPoll.atMs - nowMs, pauses.lookUpMs, restMs, dayLeftMs), ends)
      if (this.#pollRequested || (await this.#override.hotUntilMs(nowMs)) !== leader.hotUntilMs) return false
    }
  }

  /** Waits while the queues are full; true when it had to, so that everything is to be decided again. */
  async #waitForRoom(leader: Leader, signal: AbortSignal): Promise<boolean> {
    const { tooManyWaiting, limits, clock } = this.#deps
    let waited = false
    while (!signal.aborted && (await tooManyWaiting())) {
      waited = true
      leader.lease.check()
      this.#view.full(clock.now() + limits.backpressureIntervalMs)
      await this.#view.save()
      await this.#sleep(limits.backpressureIntervalMs, signal)
    }
    return waited
  }

  async #poll(leader: Leader, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    const startMs = clock.now()
    this.#pollRequested = false
    leader.lastStartMs = startMs
    this.#view.polling(startMs)
    await this.#withReader(leader, signal, async (reader, ending) => {
      const result = await this.#deps.poll(reader.read, ending)
      await this.#learn(leader, { result, tally: reader.tally, startMs, endMs: clock.now() })
    })
  }

  #withReader<T>(leader: Leader, signal: AbortSignal, work: ReaderWork<T>): Promise<T> {
    return withReader(this.#deps, { ...leader, signal, onCall: () => this.#markActive() }, work)
  }

  async #learn(leader: Leader, done: NonNullable<Leader['done']>): Promise<void> {
    const { result, tally, endMs } = done
    const error = applyResult(leader, done, this.#deps)
    if (result.ok) this.#crash = undefined
    this.#view.polled(result, error ? describeFailure(error, endMs) : null)
    if (result.reason === 'refused_lease') throw new LeaseLost(error?.message ?? 'another replica polls now')
    await this.#state.save(leader.schedule.snapshot())
    await this.#view.save()
    if (error !== undefined && (tally.redisAway || isRedisAway(error))) throw error
  }

  /** Waits where Redis is away; throws everything else to the caller. */
  async #pauseForRedis(thrown: unknown, signal: AbortSignal): Promise<void> {
    if (signal.aborted || !isRedisAway(thrown)) throw thrown
    this.#view.enter('redis_down', redisErrorText(thrown))
    await this.#sleep(pauses.redisMs, signal)
  }

  #logPoll(leader: Leader): void {
    if (!leader.done) return
    logPoll(this.#deps.log, { ...leader.done, source: this.source, status: this.#view.status })
    leader.done = undefined
  }

  /** Sleeps that long, or until `pollNow` or the signal ends it; never throws. */
  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    this.#markActive(ms)
    await this.#deps.clock.sleep(ms, AbortSignal.any([signal, this.#wake.signal])).catch(() => {})
    if (this.#wake.signal.aborted) this.#wake = new AbortController()
    this.#markActive()
  }

  #markActive(restMs = 0): void {
    const actedAtMs = this.#deps.clock.monotonicMs()
    this.#activity = { actedAtMs, dueAtMs: actedAtMs + restMs }
  }
}
