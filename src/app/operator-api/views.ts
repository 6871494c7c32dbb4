import type {
  AttemptView,
  DeadLetterRow,
  DeliveryRow,
  DeliveryState,
  DeliveryStory,
  LetterGroupsView,
} from '../../admin/views/delivery-view.ts'
import type {
  BudgetStatus,
  QuarantinedRow,
  RulesStatus,
  SourceState,
  SourceView,
} from '../../admin/views/status-view.ts'
import { cut } from '../../alert/text/text.ts'
import type { AttemptRecord } from '../../delivery/queue/attempt-record.ts'
import type { DeadLetter as StoredDeadLetter } from '../../delivery/records/dead-letters.ts'
import type { JobHistory } from '../../delivery/records/delivery-log.ts'
import type { AlertSummary, JobState, JobView } from '../../delivery/records/job-view.ts'
import type { LetterGroups } from '../../delivery/records/letter-groups.ts'
import { given } from '../../lib/given.ts'
import { lastingFailure, overdueMs } from '../../poller/health.ts'
import type { BudgetDay, DecisionReason } from '../../schedule/schedule.ts'
import type { PollerState, PollerStatus } from '../../store/source/source-status.ts'
import type { Quarantined } from '../../store/walk/quarantine.ts'
import { purposes } from '../../telemetry/metrics.ts'

/** Turns values of other rooms (milliseconds, internal words) into what the API shows (ISO instants, operator words). */

const stateWords: Record<JobState, DeliveryState> = {
  waiting: 'waiting',
  active: 'active',
  delayed: 'delayed',
  completed: 'delivered',
  failed: 'dead',
}
const jobStates = Object.fromEntries(Object.entries(stateWords).map(([job, word]) => [word, job])) as Record<
  DeliveryState,
  JobState
>

export function jobStateOf(state: DeliveryState): JobState {
  return jobStates[state]
}

export function deliveryRowOf(view: JobView): DeliveryRow {
  const { alert, target, attempts, failure } = view
  return {
    ...(alert ? inList(alert) : unreadableAlert(view.jobId)),
    seenAt: isoOrNull(view.seenAtMs),
    sink: view.sink,
    ...(target === undefined ? {} : { target }),
    state: stateWords[view.state],
    attempts: view.delivered?.number ?? attempts,
    updatedAt: isoOrNull(view.changedAtMs),
    reason: failure ?? null,
    nextAttemptAt: isoOrNull(view.nextAttemptAtMs),
  }
}

/**
 * For lists of hundreds of alerts: one field of the API may be megabytes long, so texts are cut; the history of one alert
 * shows them whole. An address that is too long is left out, since half of it would be another address.
 */
export function inList(alert: AlertSummary): AlertSummary {
  const { kind, symbol, headline, url, why, ruleIds, firedAt } = alert
  return {
    ...alert,
    kind: short(kind),
    symbol: symbol === null ? null : short(symbol),
    headline: short(headline),
    url: url.length <= fieldCharsMax ? url : '',
    why: why === null ? null : short(why),
    ruleIds: ruleIds.slice(0, ruleIdsMax).map((id) => cut(id, ruleIdCharsMax)),
    firedAt: short(firedAt),
  }
}

function short(text: string): string {
  return cut(text, fieldCharsMax)
}

/** At least as long as the longest address that is made a link. */
const fieldCharsMax = 2_000
const ruleIdsMax = 100
const ruleIdCharsMax = 100

export function deadLetterRow(letter: StoredDeadLetter): DeadLetterRow {
  return { ...deliveryRowOf(letter), state: 'dead', reason: letter.failure ?? letter.reason }
}

export function letterGroupsView({ groups, looked, total }: LetterGroups): LetterGroupsView {
  const data = groups.map(({ sink, reason, count, firstAtMs, lastAtMs, sample, sampleJobId }) => {
    const { source, id } = unreadableAlert(sampleJobId)
    return {
      sink,
      reason,
      count,
      sample: short(sample),
      sampleAlert: { source, id },
      firstAt: isoOf(firstAtMs),
      lastAt: isoOf(lastAtMs),
    }
  })
  return { data, looked, total }
}

/** `unserved`: the sinks of no config. */
export function deliveryStoryOf(part: JobHistory, unserved: readonly string[]): DeliveryStory {
  const isOrphaned = part.state !== 'completed' && unserved.includes(part.sink)
  return {
    sink: part.sink,
    ...(part.target === undefined ? {} : { target: part.target }),
    routes: part.routes ?? null,
    state: stateWords[part.state],
    ...(isOrphaned ? { orphaned: true } : {}),
    reason: part.failure ?? null,
    nextAttemptAt: isoOrNull(part.nextAttemptAtMs),
    requestedAt: isoOrNull(part.requestedAtMs),
    attempts: attemptViews(part.history),
  }
}

/**
 * Numbered by their place: the numbers that are stored begin anew with each order, and repeat after an attempt that did not count.
 * After an attempt that ended a delivery there is only another one when an operator asked for it.
 */
function attemptViews(history: readonly AttemptRecord[]): AttemptView[] {
  const first = history[0]?.number ?? 1
  let round = 1
  return history.map((record, at) => {
    const view = attemptView(record, { number: first + at, round })
    if (record.result !== 'retry') round += 1
    return view
  })
}

interface SourceFacts extends Pick<SourceView, 'name' | 'here' | 'fault' | 'lag'> {
  readonly status: PollerStatus | undefined
  /** As the config has it. */
  readonly day: BudgetDay
  /** Why so many units a day do not buy what the config asks for. */
  readonly tooThin: (unitsPerDay: number) => readonly string[]
  readonly nowMs: number
}

export function sourceView(facts: SourceFacts): SourceView {
  const { name, here, fault, lag, status, day, nowMs } = facts
  const about = { name, here, fault, lag }
  if (!status)
    return {
      ...about,
      state: 'starting',
      reason: null,
      polledBy: null,
      overdueSeconds: 0,
      lastPollAt: null,
      nextPollAt: null,
      nextReason: null,
      budget: null,
      plan: null,
      rules: null,
      notes: [],
      behind: false,
      lastCompleteWalkAt: null,
    }
  return {
    ...about,
    state: sourceStateOf(status),
    reason: reasonOf(status),
    polledBy: status.by ?? null,
    overdueSeconds: Math.round(overdueMs(status, nowMs) / 1_000),
    lastPollAt: isoOrNull(status.lastPollAtMs),
    nextPollAt: isoOrNull(status.nextPollAtMs),
    nextReason: status.nextReason as DecisionReason | null,
    budget: { ...budgetStatus(status, day), tooThin: facts.tooThin(status.unitsPerDay) },
    plan: status.plan && {
      learnedFrom: status.plan.learnedFrom,
      firing: status.plan.firing,
      announced: status.plan.announced,
      hotUntil: isoOrNull(status.plan.hotUntilMs || null),
    },
    rules: status.rules && rulesStatus(status.rules),
    notes: status.doubt === null ? [] : [status.doubt.text],
    behind: status.behind,
    lastCompleteWalkAt: isoOrNull(status.lastCompleteWalkAtMs),
  }
}

function rulesStatus({ atMs, ...rules }: NonNullable<PollerStatus['rules']>): RulesStatus {
  return { readAt: isoOf(atMs), ...rules }
}

/** The budget day that the poller reported; once that is over, the configured one, of which nothing is spent yet. */
function budgetStatus(status: PollerStatus, configured: BudgetDay): Omit<BudgetStatus, 'tooThin'> {
  const { unitsUsed, unitsPerDay, byPurpose, dayStartMs, resetsAtMs, lesson } = status
  const isReported = dayStartMs !== null && resetsAtMs !== null && resetsAtMs > configured.startMs
  const [startMs, endMs] = isReported ? [dayStartMs, resetsAtMs] : [configured.startMs, configured.endMs]
  const isOver = resetsAtMs !== null && resetsAtMs <= configured.startMs
  return {
    unitsUsed: isOver ? 0 : unitsUsed,
    spentFor: isOver || byPurpose === undefined ? [] : spentFor(byPurpose, unitsUsed),
    unitsPerDay,
    startedAt: isoOf(startMs),
    resetsAt: isoOf(endMs),
    note: lesson,
  }
}

function spentFor(
  byPurpose: NonNullable<PollerStatus['byPurpose']>,
  unitsUsed: number,
): BudgetStatus['spentFor'] {
  const known = purposes
    .map((purpose) => ({ purpose, units: byPurpose[purpose] ?? 0 }))
    .filter(({ units }) => units > 0)
    .sort((a, b) => b.units - a.units)
  const unknown = unitsUsed - known.reduce((sum, { units }) => sum + units, 0)
  return unknown > 0 ? [...known, { purpose: 'unknown', units: unknown }] : known
}

export function quarantinedRowOf(source: string, { key, reason, raw, atMs }: Quarantined): QuarantinedRow {
  return { source, key, reason, seenAt: isoOf(atMs), raw }
}

/** null for a source that polls by its plan without failures: `nextReason` says enough. */
function reasonOf(status: PollerStatus): string | null {
  const failure = lastingFailure(status)
  if (failure !== undefined) return failure
  if (status.state !== 'polling' && status.state !== 'waiting') return status.reason || null
  const state = sourceStateOf(status)
  // The first page is read, and one beneath it has failed since: that is why the source stays behind.
  const failsBeneath = state === 'catching_up' && status.failingSinceMs !== null
  return state === 'retrying' || failsBeneath ? (status.lastError?.message ?? null) : null
}

function sourceStateOf(status: PollerStatus): SourceState {
  const { state, behind, lastError, lastOkAtMs } = status
  if (lastingFailure(status) !== undefined) return 'failing'
  const words: Record<PollerState, SourceState> = {
    starting: 'starting',
    standby: 'standby',
    polling: 'running',
    waiting: 'running',
    held: 'retrying',
    budget_spent: 'budget_spent',
    stopped: 'stopped',
    backpressure: 'queues_full',
    redis_down: 'retrying',
  }
  const failing = lastError !== null && lastError.atMs > (lastOkAtMs ?? 0)
  const word = words[state]
  if (word !== 'running') return word
  return failing ? 'retrying' : behind ? 'catching_up' : 'running'
}

function attemptView(record: AttemptRecord, place: Pick<AttemptView, 'number' | 'round'>): AttemptView {
  return {
    ...place,
    at: isoOf(record.atMs),
    durationSeconds: record.durationMs / 1_000,
    outcome: record.result === 'expired' ? 'dead' : record.result,
    reason: record.reason ?? null,
    status: record.status ?? null,
    text: record.text,
    ...given({ skipped: record.skipped }),
  }
}

/** A job whose data cannot be read is shown under its job id rather than hidden. */
function unreadableAlert(jobId: string) {
  const [source = '', id = ''] = jobId.split('.')
  return {
    source,
    id: Number(id) || 0,
    kind: '',
    symbol: null,
    headline: `(unreadable: ${jobId})`,
    url: '',
    firedAt: '',
  }
}

export function isoOrNull(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : isoOf(ms)
}

export function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}
