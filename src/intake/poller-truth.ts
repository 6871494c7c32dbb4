import {
  type BudgetTruth,
  budgetInForce,
  budgetTruthSchema,
  confirmSpending,
  type Lesson,
  learnRefusal,
  type Refusal,
} from '../schedule/refusal.ts'
import type { BudgetView } from '../schedule/schedule.ts'
import type { BudgetTruthStore } from '../store/budget-truth.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

interface TruthDeps {
  readonly source: string
  readonly log: Logger
  readonly metrics: Metrics
  /** As configured. */
  readonly unitsPerDay: number
}

/**
 * What the account's budget really is, as the feed's refusals and grants tell it. It only ever plans with less than the
 * config allows: the ledger counts in the configured day, whatever is learned here.
 */
export class PollerTruth {
  readonly #deps: TruthDeps
  readonly #store: BudgetTruthStore
  #truth: BudgetTruth | undefined

  constructor(deps: TruthDeps, store: BudgetTruthStore) {
    this.#deps = deps
    this.#store = store
  }

  /** Throws what Redis throws. */
  async load(): Promise<void> {
    const parsed = budgetTruthSchema.safeParse(await this.#store.load())
    this.#take(parsed.success ? parsed.data : undefined)
  }

  inForce(view: BudgetView, nowMs: number): BudgetView {
    return budgetInForce(view, this.#truth, nowMs)
  }

  /** The feed refused a call for the day's budget. */
  async refused(refusal: Refusal): Promise<void> {
    await this.#learn(learnRefusal(refusal))
  }

  /** The feed granted a call. */
  async granted(spent: { atMs: number; unitsUsed: number }): Promise<void> {
    const lesson = this.#truth && confirmSpending(this.#truth, spent)
    if (lesson) await this.#learn(lesson)
  }

  async #learn({ truth, text }: Lesson): Promise<void> {
    this.#take(truth)
    this.#deps.log.warn(
      { source: this.#deps.source, unitsPerDay: truth.unitsPerDay },
      `budget.learned: ${text}`,
    )
    // What Redis could not keep is learned again by the next refusal.
    await this.#store.save(truth).catch(() => {})
  }

  #take(truth: BudgetTruth | undefined): void {
    const { metrics, source, unitsPerDay } = this.#deps
    this.#truth = truth
    metrics.budgetUnitsLearned.set({ source }, truth?.unitsPerDay ?? unitsPerDay)
  }
}
