import type { Clock } from '../lib/clock.ts'
import type { BudgetView } from '../schedule/schedule.ts'
import type { ScheduleState } from '../store/source/schedule-state.ts'
import { type Leader, retryOfMinute } from './leader.ts'
import type { NextPoll } from './next-poll.ts'
import type { CallTally, ReaderWork } from './reader.ts'
import type { PollerDeps, PollerLimits, ReadPage } from './settings.ts'
import { historyPages, readHistory, sweepGoesOn, sweepPages } from './spare.ts'

/**
 * Reads pages that no poll waits for: of the past, and sweeps. They have only what polls leave of each minute, and end before a page
 * that would be read when a poll is due. Both only interrupt them: they go on later, where they were.
 */
interface SparePages {
  readonly leader: Leader
  readonly nextPoll: NextPoll
  readonly budget: BudgetView & { readonly shareLeft: number }
  readonly behind: boolean
  /** Whether a person asks for a poll now. */
  readonly isPollAsked: () => boolean
  readonly withReader: <T>(work: ReaderWork<T>) => Promise<T>
}

type SpareDeps = Pick<PollerDeps, 'source' | 'sweep' | 'planners' | 'clock' | 'log'> & {
  readonly limits: Pick<Required<PollerLimits>, 'historyPages'>
}

/** True when pages of the past were read, so that everything is to be decided again. */
export async function buyHistory(
  { source, limits, clock, log }: SpareDeps,
  state: Pick<ScheduleState, 'save'>,
  { leader, nextPoll, budget: { unitsLeft }, behind, isPollAsked, withReader }: SparePages,
): Promise<boolean> {
  const { memory } = leader.schedule.describe(clock.now())
  const begun = leader.history
  const bought = historyPages({ ...leader, begun, wanted: limits.historyPages, unitsLeft, memory, behind })
  if (!bought || isResting(leader, clock)) return false
  return withReader(async ({ read, tally }) => {
    const beforePoll = untilDue(read, { nextPoll, isPollAsked, clock })
    const { pages, firedAtMs, goesOn } = await readHistory(beforePoll, bought, clock.now())
    leader.history = { afterPage: bought.afterPage + pages, pagesMax: bought.pagesMax - pages }
    leader.historyRead = !goesOn
    restAfter(leader, tally, pages, clock)
    if (pages === 0 && goesOn) return false
    leader.schedule.learnHistory(firedAtMs)
    await state.save(leader.schedule.snapshot())
    log.info({ source, pages, alerts: firedAtMs.length }, 'poll.history')
    return pages > 0
  })
}

/** True when units were spent on late rows, so that everything is to be decided again. */
export async function sweepOn(
  { sweep, planners, clock }: SpareDeps,
  { leader, nextPoll, budget, behind, isPollAsked, withReader }: SparePages,
): Promise<boolean> {
  // Also where nothing is read: the loop wakes at the end of a rest that nobody has ended.
  const rests = isResting(leader, clock)
  const healthy = leader.done === undefined && leader.failures === 0 && !behind
  const pagesMax = sweepPages({ ...leader, ...budget, planners, nowMs: clock.now(), nextPoll, healthy })
  if (pagesMax === 0 || leader.sweptDay === budget.day.key || rests) return false
  return withReader(async ({ read, tally }, ending) => {
    const beforePoll = untilDue(read, { nextPoll, isPollAsked, clock })
    const { reason, pages } = await sweep(beforePoll, pagesMax, ending)
    if (!sweepGoesOn(reason)) leader.sweptDay = budget.day.key
    restAfter(leader, tally, pages, clock)
    return pages > 0
  })
}

/** How long the loop may sleep until such pages are tried again, in milliseconds; none are waited for: without end. */
export function spareRestMs({ spareRest }: Pick<Leader, 'spareRest'>, clock: Clock): number {
  return spareRest.untilMs === 0 ? Number.POSITIVE_INFINITY : spareRest.untilMs - clock.monotonicMs()
}

/** A rest that is over ends, so that the loop wakes for it once. */
function isResting({ spareRest }: Pick<Leader, 'spareRest'>, clock: Clock): boolean {
  if (clock.monotonicMs() < spareRest.untilMs) return true
  spareRest.untilMs = 0
  return false
}

/** Until several pages may be read at once: each try looks at the walk first, and writes a line. */
const restMs = { min: 5_000, max: 65_000 }

function restAfter({ spareRest }: Leader, { refused }: CallTally, pages: number, clock: Clock): void {
  if (refused?.limit !== 'minute') return
  spareRest.refusals = pages > 0 ? 1 : spareRest.refusals + 1
  // Of two sources of one account, the one that read none goes first.
  const waitMs = retryOfMinute(refused.retryAtMs, spareRest.refusals) - clock.now()
  spareRest.untilMs = clock.monotonicMs() + Math.min(restMs.max, Math.max(restMs.min, waitMs))
}

/** A page that may take as long as the slowest one did is not begun where a poll would be late for it. */
function untilDue(
  read: ReadPage,
  { nextPoll, isPollAsked, clock }: Pick<SparePages, 'nextPoll' | 'isPollAsked'> & { readonly clock: Clock },
): ReadPage {
  let slowestMs = 0
  return async (page, purpose) => {
    const startedMs = clock.monotonicMs()
    if (isPollAsked() || clock.now() + slowestMs >= nextPoll.atMs) return { kind: 'refused', why: 'rest' }
    const answer = await read(page, purpose)
    slowestMs = Math.max(slowestMs, clock.monotonicMs() - startedMs)
    return answer
  }
}
