import { alertKey } from '../alert/alert.ts'
import type { Assignment } from '../alert/assignment.ts'
import { believedAt } from '../alert/fired-at.ts'
import { redisErrorText } from '../store/connection/redis-errors.ts'
import { type ExaminedPage, type FiringTime, isUnrouted, type SortedRows } from './intake.ts'
import type { PollDeps, PollReason, PollResult } from './poll-types.ts'

type Counts = {
  -readonly [K in keyof Omit<PollResult, 'reason' | 'ok' | 'fired' | 'stopped' | 'error'>]: PollResult[K]
}

/** What a poll or a sweep has done so far: added to the metrics as it happens, returned to the caller at the end. */
export interface Tally extends Counts {
  /** In the order of the pages. */
  readonly fired: FiringTime[]
  /** The rows of the first page are stored. */
  headTaken: boolean
  /** A second page has shown that pages outside of the walk, which looked foreign, are of this feed. */
  outsideIsOurs: boolean
}

export function createTally(): Tally {
  return {
    pages: 0,
    newAlerts: 0,
    unrouted: 0,
    passedOver: 0,
    duplicates: 0,
    quarantined: 0,
    fired: [],
    doubt: null,
    behind: false,
    finished: false,
    lastCompleteMs: null,
    feedGap: 0,
    total: null,
    headTaken: false,
    lost: false,
    outsideIsOurs: false,
  }
}

/** Counts a page whose rows are stored and marked. */
export function countPage(
  tally: Tally,
  { metrics, state: { source } }: PollDeps,
  page: {
    readonly examined: ExaminedPage
    readonly sorted: SortedRows
    readonly assignments: readonly Assignment[]
    /** Rows that were removed from the full quarantine. */
    readonly fellOut: number
  },
): void {
  const { examined, assignments, fellOut } = page
  const { nowMs } = examined
  const { alerts, quarantine, readable, passedOver, shown, fired, doubt } = page.sorted
  const duplicates = shown.filter((key) => !readable.includes(key)).length
  const unrouted = assignments.filter(isUnrouted).length
  tally.newAlerts += alerts.length
  tally.unrouted += unrouted
  tally.passedOver += passedOver
  tally.duplicates += duplicates
  tally.quarantined += quarantine.length
  tally.fired.push(...fired)
  tally.doubt ??= doubt
  metrics.alertsSeen.inc({ source }, alerts.length)
  metrics.alertsUnrouted.inc({ source }, unrouted)
  for (const reason of assignments.flatMap(({ withheld }) => withheld))
    metrics.alertsHeld.inc({ source, reason })
  metrics.alertsDuplicate.inc({ source }, duplicates)
  metrics.alertsQuarantined.inc({ source }, quarantine.length)
  metrics.quarantineFellOut.inc({ source }, fellOut)
  for (const alert of alerts) {
    const firedAtMs = believedAt(alert.firedAtMs, nowMs)
    // What was fired before this source was set up could not have been seen earlier.
    if (firedAtMs === null || firedAtMs < examined.looked.facts.createdMs) continue
    metrics.tracer?.found(alert, { firedAtMs, nowMs })
    metrics.detectionLag.observe({
      labels: { source },
      value: Math.max(0, nowMs - firedAtMs) / 1_000,
      exemplarLabels: { alert: alertKey(alert) },
    })
  }
}

const foreignFeedHelp =
  'the token shows a feed of which nothing is known here, so nothing was taken: put the token right, or give the source another name'

/** Logs above debug only where a person is needed. */
export function reportPoll({ log, metrics, state: { source } }: PollDeps, result: PollResult): PollResult {
  const { reason, pages, newAlerts, passedOver, quarantined, behind, lastCompleteMs, error } = result
  if (lastCompleteMs !== null) metrics.lastCompleteWalk.set({ source }, lastCompleteMs / 1_000)
  const line = { source, reason, pages, newAlerts, passedOver, quarantined, behind }
  // The loop writes the line that people read, `poll.done`: it knows when the next poll is.
  if (error !== undefined) log.debug({ ...line, why: redisErrorText(error) }, 'poll')
  else if (reason === 'foreign_feed') log.error(line, foreignFeedHelp)
  else if (reason === 'state_lost') log.error(line, 'Redis has lost its data during this poll')
  else log.debug(line, 'poll')
  return result
}

export function toResult(tally: Tally, reason: PollReason, error?: unknown): PollResult {
  const { headTaken, outsideIsOurs, fired, ...counts } = tally
  return {
    ...counts,
    reason,
    ok: headTaken,
    fired: fired.toSorted((a, b) => a.firedAtMs - b.firedAtMs),
    stopped: reason === 'foreign_feed' ? 'foreign_feed' : null,
    ...(error === undefined ? {} : { error }),
  }
}
