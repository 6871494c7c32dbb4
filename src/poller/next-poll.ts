import type { BudgetDay, Decision, DecisionReason } from '../schedule/schedule.ts'
import type { Hold } from '../store/ledger/ledger.ts'
import { resetGuardMs } from '../store/ledger/ledger-days.ts'

/**
 * When the loop acts next, and what it is doing until then; pure. The schedule decides when a poll is due, with all intervals,
 * retries and catching up. Only others can change that: the API and the ledger may refuse until later, a person may ask for a
 * poll or be needed, and the clock may be set back.
 */
export interface NextPoll {
  readonly atMs: number
  readonly state: 'waiting' | 'held' | 'budget_spent' | 'stopped'
  readonly nextReason: DecisionReason
  /** For people. */
  readonly reason: string
}

/** Why a person is needed, when the next try may be, and whether it waits for a poll of the plan: as a call it costs as much. */
export interface Stopped {
  readonly reason: string
  readonly retryAtMs: number
  readonly byPlan: boolean
}

export interface NextPollInput {
  readonly nowMs: number
  readonly decision: Decision
  readonly day: BudgetDay
  readonly unitsLeft: number
  readonly unitsPerDay: number
  /** When a call beyond what the API granted before is tried, if no poll began since; undefined: never. */
  readonly trialAtMs?: number | undefined
  readonly minIntervalMs: number
  /** When the last poll began; null before the first. */
  readonly lastStartMs: number | null
  readonly hold: Hold | undefined
  /** When the ledger grants units again, if it refused the last poll. */
  readonly refusedUntilMs: number | undefined
  /** How many polls in a row the minute refused before they made a call. */
  readonly minuteRefusals?: number
  /** Set while a person has to correct something. */
  readonly stopped: Stopped | undefined
  /** A person asked for a poll now. */
  readonly pollRequested: boolean
  /** Rows are known to wait that no poll could read yet. */
  readonly behind?: boolean
  /** When the last poll began that showed something of the feed: others read nothing of what waits. */
  readonly lastShownMs?: number | null
}

export function decideNextPoll(input: NextPollInput): NextPoll {
  const { nowMs, hold, stopped, pollRequested, unitsLeft } = input
  const due = duePoll(input)
  const earliestMs = notBefore(input)
  const atMs = Math.max(unitsLeft > 0 ? due.atMs : afterSpent(input, due.atMs), earliestMs)
  if (hold && hold.untilMs > nowMs) {
    const reason = `the API asked to wait: its ${hold.limit === 'minute' ? 'per-minute' : 'daily'} limit is reached`
    return { atMs: Math.max(hold.untilMs, atMs), state: 'held', nextReason: due.nextReason, reason }
  }
  if (unitsLeft <= 0) {
    const reason = reasonTexts.budget_spent
    return { atMs, state: 'budget_spent', nextReason: 'budget_spent', reason }
  }
  if (stopped && !wasSetBack(input)) {
    const { reason, retryAtMs, byPlan } = stopped
    // Asked for is not yet asked: the stop is shown until an answer says otherwise.
    if (pollRequested) return { ...due, atMs, state: 'stopped', reason }
    // Tries that come more often than polls would leave no units for when it is put right.
    return {
      atMs: Math.max(retryAtMs, byPlan ? atMs : earliestMs),
      state: 'stopped',
      nextReason: 'retry',
      reason,
    }
  }
  return { ...due, atMs, state: 'waiting' }
}

function afterSpent({ trialAtMs = 0, lastStartMs, day }: NextPollInput, dueMs: number): number {
  // The plan has an instant for the next day's first poll, too, and decides again when the day turns.
  return trialAtMs > (lastStartMs ?? 0) ? trialAtMs : Math.max(day.endMs + resetGuardMs, dueMs)
}

/** In ms. A decision from a budget day that is over was made with the units of that day, and has to be made again: 0 then. */
export function untilDayIsOver(
  { decidedMs }: { decidedMs: number },
  { endMs }: BudgetDay,
  nowMs: number,
): number {
  const turnsMs = endMs + resetGuardMs
  return decidedMs < turnsMs ? Math.max(0, turnsMs - nowMs) : Infinity
}

function duePoll(input: NextPollInput): Omit<NextPoll, 'state'> {
  const { decision, nowMs, pollRequested, lastShownMs, day } = input
  if (pollRequested) return { atMs: nowMs, nextReason: 'hot', reason: 'a poll was asked for' }
  const { reason: nextReason } = decision
  // The schedule's last poll is in the future: a poll now corrects that, for one unit.
  if (wasSetBack(input)) return { atMs: nowMs, nextReason, reason: 'the clock was set back' }
  // What a day had no units for is read as soon as the next one has them; a single unit is for the first page.
  const turnsMs = ((lastShownMs ?? 0) < day.startMs ? day.startMs : day.endMs) + resetGuardMs
  if (input.behind && input.unitsPerDay > 1 && turnsMs < decision.atMs)
    return { atMs: turnsMs, nextReason: 'catch_up', reason: reasonTexts.catch_up }
  return { atMs: decision.atMs, nextReason, reason: reasonTexts[nextReason] }
}

/** By more than the usual difference between the clocks of replicas. */
function wasSetBack({ lastStartMs, nowMs, minIntervalMs }: NextPollInput): boolean {
  return lastStartMs !== null && lastStartMs - nowMs > minIntervalMs
}

function notBefore(input: NextPollInput): number {
  const { lastStartMs, minIntervalMs, refusedUntilMs = 0, minuteRefusals = 0, nowMs } = input
  // An instant from before the clock was set back is of no use; a ledger without units refuses again.
  if (wasSetBack(input)) return nowMs
  if (lastStartMs === null || lastStartMs > nowMs) return refusedUntilMs
  // No call was made, and the ledger said when one may be: another interval would make the pace slower than the minute does.
  if (minuteRefusals > 0) return refusedUntilMs
  // The schedule does not know of a poll that made no call, nor of one that a person asks for.
  return Math.max(lastStartMs + minIntervalMs, refusedUntilMs)
}

const reasonTexts: Readonly<Record<DecisionReason, string>> = {
  first: 'the first poll',
  fixed: 'the fixed pace',
  even: 'the units left, spread evenly',
  expected: 'alerts are expected',
  burst: 'alerts just came',
  floor: 'nothing is expected',
  ceiling: 'as fast as allowed',
  announced: 'the API announces an evaluation of rules',
  mark: 'the engine fires on marks',
  hot: 'an operator asked for it',
  catch_up: 'more pages are waiting',
  retry: 'the last call failed',
  budget_spent: "the day's units are spent",
}
