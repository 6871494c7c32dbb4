import type { FeedClient } from '../feed/client.ts'
import { unitsOf } from '../feed/endpoints.ts'
import { FeedError } from '../feed/errors.ts'
import type { RulesPage } from '../feed/wire.ts'
import type { Clock } from '../lib/clock.ts'
import { toError } from '../lib/errors.ts'
import type { Ledger, TakenUnits } from '../store/ledger/ledger.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/**
 * Buys pages of the alert rules of one account: never more than `unitsPerHour`, only while the day's polls have units to spare,
 * and after a failure not for a while, which grows with the failures that follow.
 */
export interface RulePagesOptions {
  readonly source: string
  readonly feed: Pick<FeedClient, 'rules' | 'tokenTrouble'>
  readonly ledger: Pick<Ledger, 'reserve' | 'hold' | 'ended'>
  /** Units of the day that must be left for polls, now. */
  readonly leaveUnits: () => Promise<number>
  /** The API refused a call for the day's budget. Never rejects. */
  readonly onBudgetRefused: (taken: TakenUnits, askedMs: number | undefined) => Promise<void>
  readonly unitsPerHour?: number
  /** Once it aborts, no page is asked for: a reading may run while nobody waits for it. */
  readonly closing?: AbortSignal
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

const hourMs = 3_600_000
/** After a refusal or a first failure; after each further one twice as long, up to an hour. */
const pauseMs = 60_000
const pageTimeoutMs = 5_000
const pageUnits = unitsOf('/api/v1/alerts')
const unitsPerHourDefault = 20

export class RulePages {
  readonly #options: RulePagesOptions
  /** By the monotonic clock, as are the units spent in the last hour. */
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #spentAtMs: number[] = []
  /** In a row, with no reading between them that came to its end. */
  #failures = 0

  constructor(options: RulePagesOptions) {
    this.#options = options
  }

  get isPaused(): boolean {
    return this.#options.clock.monotonicMs() < this.#pausedUntilMs
  }

  /** How many an hour has units for. */
  get pagesPerHour(): number {
    return Math.floor((this.#options.unitsPerHour ?? unitsPerHourDefault) / pageUnits)
  }

  /** A reading came to its end. */
  ended(): void {
    this.#failures = 0
  }

  /** Never rejects. `not_now`: no unit was spent. */
  async buy(number: number, signal?: AbortSignal): Promise<RulesPage | 'not_now' | 'failed'> {
    const { source, feed, ledger, leaveUnits, closing, log, metrics, clock } = this.#options
    let taken: TakenUnits | undefined
    try {
      if (closing?.aborted || !this.#hasUnits()) return 'not_now'
      // While a token's file is replaced, it is empty for a moment: no call can be made, so no unit is spent.
      if (feed.tokenTrouble() !== undefined) {
        this.#pause(pauseMs)
        return 'not_now'
      }
      const purpose = 'rules'
      const reserved = await ledger.reserve({ cost: pageUnits, purpose, leaveUnits: await leaveUnits() })
      if (!reserved.ok) {
        this.#pause(pauseMs)
        log.info(
          { source, limit: reserved.limit },
          'the rules are not read now: polls come first, and this limit leaves no more',
        )
        return 'not_now'
      }
      taken = { ...reserved, units: pageUnits }
      this.#spentAtMs.push(clock.monotonicMs())
      metrics.budgetUnits.inc({ source, purpose }, pageUnits)
      metrics.budgetUnitsUsed.set({ source }, reserved.apiDayUsed ?? reserved.unitsUsed)
      const ends = [AbortSignal.timeout(pageTimeoutMs), closing, signal].filter((each) => each !== undefined)
      return await feed.rules(number, AbortSignal.any(ends))
    } catch (thrown) {
      if (closing?.aborted) return 'not_now'
      this.#failures += 1
      this.#pause(Math.min(hourMs, pauseMs * 2 ** (this.#failures - 1)))
      const known = thrown instanceof FeedError
      log.warn({ source, reason: known ? thrown.message : toError(thrown).name }, 'the rules cannot be read')
      if (known && thrown.code === 'rate_limited') {
        const limit = thrown.limit ?? 'minute'
        metrics.upstreamRateLimited.inc({ source, limit })
        await ledger.hold(limit, thrown.retryAfterMs).catch(() => {})
        if (limit === 'budget' && taken) await this.#options.onBudgetRefused(taken, thrown.retryAfterMs)
      }
      return 'failed'
    } finally {
      if (taken) ledger.ended(taken)
    }
  }

  #hasUnits(): boolean {
    const nowMs = this.#options.clock.monotonicMs()
    this.#spentAtMs = this.#spentAtMs.filter((atMs) => nowMs - atMs < hourMs)
    if (this.#spentAtMs.length < this.pagesPerHour) return true
    this.#pausedUntilMs = (this.#spentAtMs[0] ?? nowMs) + hourMs
    return false
  }

  #pause(forMs: number): void {
    this.#pausedUntilMs = this.#options.clock.monotonicMs() + forMs
  }
}
