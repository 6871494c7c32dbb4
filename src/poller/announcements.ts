import { datedAt } from '../alert/fired-at.ts'
import type { AlertRule } from '../feed/wire.ts'
import type { Clock } from '../lib/clock.ts'
import { isFarAhead } from '../lib/waits.ts'
import type { RuleBook, RulesRead } from '../routing/rules.ts'
import type { AnnouncedRule, BudgetView, RulesReading, Schedule } from '../schedule/schedule.ts'
import type { NextPoll } from './next-poll.ts'

/**
 * Pages of rules, bought when the plan asks for what the API announces of their evaluations, and now and then to see which of
 * them may not fire. They never delay a poll that is due, and what was read for routes is used too.
 */
export interface RulesState {
  /** When the reading was made that was taken last. */
  learnedAtMs: number
  /** Readings in a row that failed, and until when (monotonic clock) none is tried. */
  failures: number
  restUntilMs: number
  /** When polls were last far enough apart for a reading (monotonic clock). */
  roomAtMs: number
}

export function newRulesState(): RulesState {
  return { learnedAtMs: 0, failures: 0, restUntilMs: 0, roomAtMs: Number.NEGATIVE_INFINITY }
}

/** A reading takes a second or two: it begins only where the next poll is at least this far away. */
const pauseMsMin = 2_000
/** Where polls have been closer together for so long, it begins in the first half of the time between two of them. */
const roomWaitMs = 10 * 60_000
/** The pause after a failed reading, doubled each time: a failed page costs a unit too. */
const restMs = { first: 60 * 60_000, longest: 24 * 60 * 60_000 }
/** The pages of one reading cost at most this share of a day's units. */
const readingShare = 0.005
/** Rules are looked at no more often to see which may not fire; and with fewer units a day than buy one page, never. */
const checkMsMin = 60 * 60_000
const dayMs = 24 * 60 * 60_000

interface Situation {
  readonly schedule: Schedule
  readonly rules: RulesState
  readonly nextPoll: NextPoll
  readonly budget: BudgetView
  /** Polls in a row that failed, and how many pages the last one read; null where it failed. */
  readonly failures: number
  readonly lastPages: number | null
  /** When the last poll began. */
  readonly lastStartMs: number | null
  readonly behind: boolean
  readonly signal: AbortSignal
}

interface RulesDeps {
  readonly rules: Pick<RuleBook, 'lastReading' | 'readAnew' | 'lastRead'>
  readonly limits: { readonly rulesShare: number }
  readonly clock: Clock
}

/** Returns true when the schedule took in a reading: the caller then decides everything again. */
export async function learnAnnounced(
  { rules, clock, limits }: RulesDeps,
  view: { rules(reading: RulesRead): void },
  { schedule, rules: state, nextPoll, budget, failures, lastPages, lastStartMs, behind, signal }: Situation,
): Promise<boolean> {
  const isHealthy = failures === 0 && lastPages !== null && !behind
  if (!isHealthy || nextPoll.state !== 'waiting') return false
  const nowMs = clock.now()
  if (takeReading()) return true
  if (!hasRoom() || clock.monotonicMs() < state.restUntilMs) return false
  if (!schedule.wantsRules(nowMs, budget) && !(await isCheckDue(rules, limits, budget, nowMs))) return false
  const share = Math.max(readingShare, limits.rulesShare)
  const pagesMax = Math.max(1, Math.floor(share * budget.unitsPerDay))
  const isGood = await rules.readAnew({ pagesMax, signal })
  state.failures = isGood ? 0 : state.failures + 1
  const restsMs = isGood ? 0 : Math.min(restMs.longest, restMs.first * 2 ** (state.failures - 1))
  state.restUntilMs = clock.monotonicMs() + restsMs
  return takeReading()

  function hasRoom(): boolean {
    const leftMs = nextPoll.atMs - nowMs
    if (leftMs >= pauseMsMin) state.roomAtMs = clock.monotonicMs()
    const isLongAgo = clock.monotonicMs() - state.roomAtMs > roomWaitMs
    return leftMs >= pauseMsMin || (isLongAgo && leftMs >= (nextPoll.atMs - (lastStartMs ?? nowMs)) / 2)
  }

  function takeReading(): boolean {
    const reading = rules.lastReading()
    if (!reading || reading.atMs === state.learnedAtMs) return false
    state.learnedAtMs = reading.atMs
    schedule.learnRules(toReading(reading))
    view.rules(reading)
    return true
  }
}

/** So that all readings together, whatever they were made for, are bought for the share at most; see `silentRules`. */
async function isCheckDue(
  rules: Pick<RuleBook, 'lastRead'>,
  { rulesShare }: RulesDeps['limits'],
  { unitsPerDay }: BudgetView,
  nowMs: number,
): Promise<boolean> {
  if (rulesShare * unitsPerDay < 1) return false
  const { atMs, pages } = await rules.lastRead()
  if (isFarAhead(atMs, nowMs)) return true
  return nowMs - atMs >= Math.max(checkMsMin, (pages * dayMs) / (rulesShare * unitsPerDay))
}

function toReading({ atMs, pages, rules }: RulesRead): RulesReading {
  return { atMs, pages, rules: rules.map(toAnnounced) }
}

/** A rule that is switched off announces nothing; a value that is no date counts as unknown. */
function toAnnounced({ id, name, isActive, lastEvaluatedAt, nextEvaluationAt }: AlertRule): AnnouncedRule {
  return {
    id: String(id),
    name: typeof name === 'string' ? name : null,
    lastMs: datedAt(lastEvaluatedAt),
    nextMs: isActive === false ? null : datedAt(nextEvaluationAt),
  }
}
