import { toError } from '../lib/errors.ts'
import type { BudgetView } from '../schedule/schedule.ts'
import { createGrantStore } from '../store/grant.ts'
import { type Lease, LeaseLost, leaseRetryMs } from '../store/lease.ts'
import { isRedisAway, redisErrorText } from '../store/redis.ts'
import { createScheduleState, type ScheduleState } from '../store/schedule-state.ts'
import { createSourceOverride, type SourceOverride } from '../store/source-override.ts'
import { createSourceStatus, type PollerStatus } from '../store/source-status.ts'
import { GrantedBudget, shareOf } from './budget.ts'
import { conclude, describeFailure, type Lead, leaseOrReason, leaveToFresh, newLead, teach } from './lead.ts'
import { type Pace, paceOf } from './pace.ts'
import { type PageReader, withReader } from './reader.ts'
import { type Poller, type PollerDeps, type PollerHealth, pauses, withDefaults } from './settings.ts'
import { historyPages, readHistory, sweepGoesOn, sweepPages, sweepShareLeft } from './spare.ts'
import { healthOf, hungOf, logPoll, PollerView, type Vitals } from './status.ts'

/**
 * The loop around the walk: hold the lease, wait for the planned instant, poll, learn, tell, again. It spends nothing
 * while Redis is away, while a 429 holds or without the lease; it never gives up, and says in its status why it waits.
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
  #wanted = false
  #crash: string | undefined
  /** By the monotonic clock. */
  #pulse: Pick<Vitals, 'lastActMs' | 'expectActMs'> = { lastActMs: 0, expectActMs: 0 }

  constructor(deps: PollerDeps) {
    this.source = deps.source
    const granted = new GrantedBudget({ ...deps, ...deps.limits }, createGrantStore(deps))
    this.#deps = { ...deps, limits: withDefaults(deps.limits), granted }
    this.#view = new PollerView(deps, createSourceStatus(deps))
    this.#state = createScheduleState(deps)
    this.#override = createSourceOverride(deps)
    this.#act()
  }

  status(): PollerStatus {
    return this.#view.status
  }

  health(): PollerHealth {
    return healthOf(this.#vitals(), this.#deps.clock.monotonicMs())
  }

  hung(): string | undefined {
    return hungOf(this.#vitals(), this.#deps.clock.monotonicMs())
  }

  #vitals(): Vitals {
    return { ...this.#pulse, status: this.#view.status, crash: this.#crash }
  }

  pollNow(): void {
    this.#wanted = true
    this.#wake.abort(new Error('a poll was asked for'))
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, metrics, source, limits } = this.#deps
    let pauseMs = 0
    while (!signal.aborted) {
      try {
        await this.#serve(signal)
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
        await this.#rest(pauseMs, signal)
        pauseMs = Math.min(pauseMs * 2, pauses.restartMsMax)
      }
    }
  }

  async #serve(signal: AbortSignal): Promise<void> {
    const lease = await this.#acquire(signal)
    if (!lease) return
    try {
      const lead = await this.#begin(lease, signal)
      while (lead && !signal.aborted) await this.#turn(lead, signal)
    } finally {
      await lease.release()
    }
  }

  async #acquire(signal: AbortSignal): Promise<Lease | undefined> {
    const { leaseTtlMs: ttlMs } = this.#deps.limits
    while (!signal.aborted) {
      try {
        const lease = await leaseOrReason(this.#deps, ttlMs)
        if (typeof lease !== 'string') return lease
        this.#view.enter('standby', lease)
        await this.#deps.onStandby?.()
        await this.#rest(leaseRetryMs(ttlMs), signal)
      } catch (thrown) {
        await this.#pauseForRedis(thrown, signal)
      }
    }
    return undefined
  }

  async #begin(lease: Lease, signal: AbortSignal): Promise<Lead | undefined> {
    while (!signal.aborted) {
      try {
        lease.check()
        await Promise.all([this.#view.restore(), this.#deps.granted.load()])
        const schedule = this.#deps.createSchedule(await this.#state.load())
        return newLead(lease, schedule, this.#view.status)
      } catch (thrown) {
        await this.#pauseForRedis(thrown, signal)
      }
    }
    return undefined
  }

  async #turn(lead: Lead, signal: AbortSignal): Promise<void> {
    try {
      lead.lease.check()
      const { pace, budget, shareLeft } = await this.#decide(lead)
      await this.#view.save()
      if (await this.#study(lead, budget, signal)) return
      if (await this.#sweep(lead, pace, { ...budget, shareLeft }, signal)) return
      if (!(await this.#waitFor(pace, lead, signal))) return
      if (await this.#waitForRoom(lead, signal)) return
      await this.#poll(lead, signal)
      // The line of a poll that a shutdown ends has no next instant.
      if (signal.aborted) this.#logDone(lead)
    } catch (thrown) {
      await this.#pauseForRedis(thrown, signal)
    }
  }

  async #decide(lead: Lead): Promise<{ pace: Pace; budget: BudgetView; shareLeft: number }> {
    const { clock, ledger, limits, granted } = this.#deps
    const hotUntilMs = await this.#override.hotUntilMs(clock.now())
    if (hotUntilMs !== lead.hotUntilMs) lead.schedule.setHot(hotUntilMs)
    lead.hotUntilMs = hotUntilMs
    const nowMs = clock.now()
    lead.decidedMs = nowMs
    const means = await granted.means(nowMs)
    const budget = shareOf(means.budget, this.#deps.sharers?.() ?? 1)
    leaveToFresh(lead, means, limits.unitsPerDay, this.#view.status.behind)
    const pace = paceOf({
      ...lead,
      ...limits,
      nowMs,
      decision: lead.schedule.next(nowMs, budget),
      ...budget,
      hold: await ledger.held(),
      behind: this.#view.status.behind,
      wanted: this.#wanted,
    })
    this.#view.plan(pace, means, lead.schedule.describe(nowMs))
    this.#logDone(lead)
    return { pace, budget, shareLeft: sweepShareLeft(means, limits.sweepShare) }
  }

  /** True when the instant has come; false when everything has to be decided anew, or the loop ends. */
  async #waitFor(pace: Pace, lead: Lead, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps
    for (let seenMs = lead.decidedMs; ; ) {
      lead.lease.check()
      const nowMs = clock.now()
      if (signal.aborted || nowMs < seenMs) return false
      if (nowMs >= pace.atMs) return true
      seenMs = nowMs
      await this.#rest(
        Math.min(pace.atMs - nowMs, pauses.lookUpMs),
        AbortSignal.any([signal, lead.lease.lost]),
      )
      if (this.#wanted || (await this.#override.hotUntilMs(nowMs)) !== lead.hotUntilMs) return false
    }
  }

  /** Waits while the queues are full; true when it had to, and everything is to be decided anew. */
  async #waitForRoom(lead: Lead, signal: AbortSignal): Promise<boolean> {
    const { tooManyWaiting, limits } = this.#deps
    let waited = false
    while (!signal.aborted && (await tooManyWaiting?.())) {
      waited = true
      lead.lease.check()
      this.#view.enter('backpressure', 'the queues are full: rows wait in the feed')
      await this.#view.save()
      await this.#rest(limits.backpressureIntervalMs, signal)
    }
    return waited
  }

  async #poll(lead: Lead, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    const startMs = clock.now()
    this.#wanted = false
    lead.lastStartMs = startMs
    this.#view.polling(startMs)
    await this.#reading(lead, signal, async (reader) => {
      const result = await this.#deps.poll(reader.read)
      await this.#learn(lead, { result, tally: reader.tally, startMs, endMs: clock.now() })
    })
  }

  /** True when pages of the past were bought, so that everything is to be decided anew. */
  async #study(lead: Lead, { unitsLeft }: BudgetView, signal: AbortSignal): Promise<boolean> {
    const { limits, clock, log } = this.#deps
    const { behind } = this.#view.status
    const { memory } = lead.schedule.describe(clock.now())
    const bought = historyPages({ ...lead, wanted: limits.historyPages, unitsLeft, memory, behind })
    if (!bought) return false
    lead.historyRead = true
    return this.#reading(lead, signal, async (reader) => {
      const { pages, firedAtMs } = await readHistory(reader.read, bought, this.#deps.clock.now())
      lead.schedule.learnHistory(firedAtMs)
      await this.#state.save(lead.schedule.snapshot())
      log.info({ source: this.source, pages, alerts: firedAtMs.length }, 'poll.history')
      return pages > 0
    })
  }

  /** True when units were spent on late rows, so that everything is to be decided anew. */
  async #sweep(
    lead: Lead,
    pace: Pace,
    budget: BudgetView & { readonly shareLeft: number },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { clock, sweep } = this.#deps
    const well = lead.done === undefined && lead.failures === 0 && !this.#view.status.behind
    const pagesMax = sweepPages({ ...lead, ...budget, nowMs: clock.now(), pace, well })
    if (!sweep || pagesMax === 0 || lead.sweptDay === budget.day.key) return false
    return this.#reading(lead, signal, async (reader) => {
      const { reason, pages } = await sweep(reader.read, pagesMax)
      if (!sweepGoesOn(reason)) lead.sweptDay = budget.day.key
      return pages > 0
    })
  }

  #reading<T>(lead: Lead, signal: AbortSignal, work: (reader: PageReader) => Promise<T>): Promise<T> {
    return withReader(this.#deps, { ...lead, signal, onCall: () => this.#act() }, work)
  }

  async #learn(lead: Lead, done: NonNullable<Lead['done']>): Promise<void> {
    const { result, tally, endMs } = done
    const { clock, limits } = this.#deps
    const error = conclude(lead, done, limits.stoppedIntervalMs, clock.monotonicMs())
    if (result.ok) this.#crash = undefined
    this.#view.polled(result, error ? describeFailure(error, endMs) : null)
    teach(lead.schedule, done)
    if (result.reason === 'refused_lease') throw new LeaseLost('another replica polls now')
    await this.#state.save(lead.schedule.snapshot())
    await this.#view.save()
    if (error !== undefined && (tally.redisAway || isRedisAway(error))) throw error
  }

  /** Redis being away is nothing that ends the loop; everything else goes on to who can judge it. */
  async #pauseForRedis(thrown: unknown, signal: AbortSignal): Promise<void> {
    if (signal.aborted || !isRedisAway(thrown)) throw thrown
    this.#view.enter('redis_down', redisErrorText(thrown))
    await this.#rest(pauses.redisMs, signal)
  }

  #logDone(lead: Lead): void {
    if (!lead.done) return
    logPoll(this.#deps.log, { ...lead.done, source: this.source, status: this.#view.status })
    lead.done = undefined
  }

  /** Sleeps until then, or until somebody wakes the loop; never throws. */
  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    this.#act(ms)
    await clock.sleep(ms, AbortSignal.any([signal, this.#wake.signal])).catch(() => {})
    if (this.#wake.signal.aborted) this.#wake = new AbortController()
    this.#act()
  }

  #act(restMs = 0): void {
    const lastActMs = this.#deps.clock.monotonicMs()
    this.#pulse = { lastActMs, expectActMs: lastActMs + restMs }
  }
}
