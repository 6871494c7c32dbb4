import { type DayPlan, planDay } from './day-plan.ts'
import { decide } from './decide.ts'
import { learnPast, learnPoll, rollDate } from './learn.ts'
import { type MarkPlan, markLimits, planMarks } from './mark-plan.ts'
import { emptyMemory, type Memory, readMemory, saveMemory } from './memory.ts'
import type { ScheduleOptions } from './options.ts'
import { isProven, type Phase } from './phase.ts'
import { learnedAlerts } from './profile.ts'
import { retryAt } from './retry.ts'
import type { BudgetView, Decision, PollReport, Schedule, ScheduleView } from './schedule.ts'

/**
 * The schedule that learns. It owns the memory and what is derived from it (the day's plan, the plan for marks), and
 * derives both anew exactly when the memory that they stand on changes, so that a restart decides as if it had not been.
 */
export function learnedSchedule(options: ScheduleOptions, saved: unknown): Schedule {
  const restored = readMemory(saved)
  return new LearnedSchedule(options, restored ?? emptyMemory(), memoryState(saved, restored))
}

class LearnedSchedule implements Schedule {
  readonly #options: ScheduleOptions
  readonly #memory: Memory
  readonly #state: ScheduleView['memory']
  #plan: DayPlan | undefined
  #learned = 0
  #marks: MarkPlan | undefined
  #lookedAt = 0

  constructor(options: ScheduleOptions, memory: Memory, state: ScheduleView['memory']) {
    this.#options = options
    this.#memory = memory
    this.#state = state
    if (!memory.lockedOn) return
    this.#marks = planMarks(memory.lockedOn, markLimits(options), true)
    this.#lookedAt = memory.lockedOn.total
  }

  observe(poll: PollReport): void {
    const dateChanged = rollDate(this.#memory, this.#options, poll.atMs)
    const profileChanged = learnPoll(this.#memory, this.#options, this.#plan, poll)
    if (dateChanged || profileChanged) this.#plan = undefined
    if (poll.firedAtMs.length > 0) this.#lookForMarks()
  }

  next(nowMs: number, budget: BudgetView): Decision {
    const memory = this.#memory
    if (rollDate(memory, this.#options, nowMs)) this.#plan = undefined
    if (budget.unitsLeft <= 0) return { atMs: budget.day.endMs, reason: 'budget_spent' }
    const { lastAtMs } = memory.attempts
    if (lastAtMs === null) return { atMs: nowMs, reason: 'first' }
    const retryMs = retryAt(memory.attempts, this.#options.minIntervalMs)
    if (retryMs !== undefined) return { atMs: retryMs, reason: 'retry' }
    const plan = this.#planFor(budget)
    return decide(memory, this.#options, plan, this.#marks, budget, lastAtMs, this.#learned)
  }

  learnHistory(firedAtMs: readonly number[]): void {
    learnPast(this.#memory, this.#options, firedAtMs)
    this.#plan = undefined
    this.#lookForMarks()
  }

  setHot(untilMs: number): void {
    this.#memory.hotUntilMs = Math.max(0, untilMs)
  }

  snapshot(): unknown {
    return saveMemory(this.#memory)
  }

  describe(): ScheduleView {
    return {
      learnedFrom: Math.round(learnedAlerts(this.#memory.profile)),
      memory: this.#state,
      firing: describeMarks(this.#marks),
      onMarks: this.#marks !== undefined,
      hotUntilMs: this.#memory.hotUntilMs,
    }
  }

  #planFor({ day }: BudgetView): DayPlan {
    if (this.#plan?.day.startMs !== day.startMs || this.#plan.day.endMs !== day.endMs) {
      this.#plan = planDay(this.#memory.profile, day, this.#options)
      this.#learned = learnedAlerts(this.#memory.profile)
    }
    return this.#plan
  }

  /** Locks, unlocks, and looks again once much more is known than when it looked last. */
  #lookForMarks(): void {
    const { phase, lockedOn } = this.#memory
    const held = lockedOn !== null
    const lost = held && !isProven(phase.secondGain, true)
    if (!lost && !this.#knowsMore(phase)) return
    this.#lookedAt = phase.total
    this.#marks = planMarks(phase, markLimits(this.#options), held)
    this.#memory.lockedOn = this.#marks ? structuredClone(phase) : null
  }

  /** Half as much again, or so much that the old half was let go; only where there may be a pattern at all. */
  #knowsMore({ total, secondGain }: Phase): boolean {
    return isProven(secondGain, false) && (total >= 1.5 * this.#lookedAt || total < this.#lookedAt)
  }
}

function memoryState(saved: unknown, restored: Memory | undefined): ScheduleView['memory'] {
  if (restored) return 'restored'
  return saved === undefined || saved === null ? 'fresh' : 'lost'
}

function describeMarks(marks: MarkPlan | undefined): string {
  if (!marks) return 'at any time, as far as seen'
  const second = ((marks.startMs + (marks.offsetsMs[0]?.[0] ?? 0)) / 1_000) % 60
  return `each minute; one poll is best at second ${second.toFixed(2)}, where an alert waits ${marks.waitSeconds.toFixed(1)} s`
}
