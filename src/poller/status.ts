import type { PollResult } from '../intake/poll-types.ts'
import { isFarAhead } from '../lib/waits.ts'
import type { RulesRead } from '../routing/rules.ts'
import type { ScheduleView } from '../schedule/schedule.ts'
import {
  type PollerState,
  type PollerStatus,
  type SourceStatusStore,
  startingStatus,
} from '../store/source/source-status.ts'
import { type SourceStateLabel, sourceStates } from '../telemetry/metrics.ts'
import { forgetPolling } from '../telemetry/series.ts'
import type { AvailableBudget } from './budget.ts'
import { lastingFailure } from './health.ts'
import type { NextPoll } from './next-poll.ts'
import type { PollerDeps } from './settings.ts'

type ViewDeps = Pick<PollerDeps, 'source' | 'log' | 'metrics' | 'clock' | 'limits' | 'onRules'>

/** What the loop is doing, for people, metrics and other replicas. Every change of state is logged once. */
export class PollerView {
  readonly #deps: ViewDeps
  readonly #store: SourceStatusStore
  #status: PollerStatus
  /** The trouble that was logged last, until a poll succeeds. */
  #reportedTrouble: PollerState | undefined
  #failureReported = false

  constructor(deps: ViewDeps, store: SourceStatusStore) {
    this.#deps = deps
    this.#store = store
    this.#status = startingStatus(deps.source, deps.limits.unitsPerDay, deps.clock.now())
  }

  get status(): PollerStatus {
    return this.#status
  }

  /** What the last poller of this source knew, on this replica or another, by this one's clock; its state is not ours. */
  async restore(): Promise<void> {
    const known = await this.#store.loadBy(() => this.#deps.clock.now())
    if (!known) return
    const nowMs = this.#deps.clock.now()
    const believed = (ms: number | null) => (ms === null || isFarAhead(ms, nowMs) ? null : ms)
    this.#change({
      lastPollAtMs: believed(known.lastPollAtMs),
      lastOkAtMs: believed(known.lastOkAtMs),
      lastCompleteWalkAtMs: believed(known.lastCompleteWalkAtMs),
      lastError: known.lastError && isFarAhead(known.lastError.atMs, nowMs) ? null : known.lastError,
      doubt: known.doubt && isFarAhead(known.doubt.atMs, nowMs) ? null : known.doubt,
      failingSinceMs: believed(known.failingSinceMs),
      rules: known.rules && isFarAhead(known.rules.atMs, nowMs) ? null : known.rules,
      behind: known.behind,
      keptForHead: known.keptForHead,
    })
    this.#measureRestored()
  }

  /** An alert on these is not over because a process started, or another one took the source over. */
  #measureRestored(): void {
    const { metrics, source } = this.#deps
    const { lastOkAtMs, lastCompleteWalkAtMs, rules } = this.#status
    if (lastOkAtMs !== null) metrics.lastPoll.set({ source }, lastOkAtMs / 1_000)
    if (lastCompleteWalkAtMs !== null) metrics.lastCompleteWalk.set({ source }, lastCompleteWalkAtMs / 1_000)
    if (rules !== null) metrics.rulesSilent.set({ source }, rules.silentCount)
  }

  enter(state: PollerState, reason: string, nextPollAtMs = this.#status.nextPollAtMs): void {
    const { state: before, sinceMs } = this.#status
    const nowMs = this.#deps.clock.now()
    this.#change({ state, reason, nextPollAtMs, sinceMs: state === before ? sinceMs : nowMs })
    this.#logTrouble(state, reason)
    const { log, source, metrics } = this.#deps
    if (state !== 'standby' || before === 'standby') return
    forgetPolling(metrics, source)
    log.info({ source, reason }, 'poller.standby')
  }

  /** Nothing is asked for before `againMs`; then the queues are looked at again. */
  full(againMs: number): void {
    this.enter('backpressure', 'the queues are full: rows wait in the feed', againMs)
  }

  plan(
    nextPoll: NextPoll,
    { shown, used, byPurpose, lesson, keptForHead }: AvailableBudget & Pick<PollerStatus, 'keptForHead'>,
    schedule: ScheduleView,
  ): void {
    const { learnedFrom, firing, onMarks, announced, hotUntilMs } = schedule
    const { metrics, source, limits } = this.#deps
    metrics.budgetUnitsLimit.set({ source }, limits.unitsPerDay)
    metrics.budgetUnitsLearned.set({ source }, shown.unitsPerDay)
    metrics.budgetUnitsUsed.set({ source }, used)
    metrics.budgetReset.set({ source }, shown.day.endMs / 1_000)
    metrics.planLearned.set({ source }, learnedFrom)
    metrics.planOnMarks.set({ source }, onMarks ? 1 : 0)
    metrics.planOnAnnounced.set({ source }, announced?.follows ? 1 : 0)
    metrics.nextPoll.set({ source }, nextPoll.atMs / 1_000)
    this.#change({
      nextPollAtMs: nextPoll.atMs,
      nextReason: nextPoll.nextReason,
      unitsUsed: used,
      unitsPerDay: shown.unitsPerDay,
      byPurpose,
      keptForHead,
      dayStartMs: shown.day.startMs,
      resetsAtMs: shown.day.endMs,
      lesson,
      plan: firing === null ? null : { learnedFrom, firing, hotUntilMs, announced },
    })
    this.enter(nextPoll.state, nextPoll.reason)
  }

  /** An older copy shows nothing, and neither does what a replica that polls again had read before another one did. */
  rules(reading: RulesRead): void {
    const { metrics, source, onRules } = this.#deps
    const [{ atMs, rules, unread, isOlder }, lastMs] = [reading, this.#status.rules?.atMs ?? 0]
    if (isOlder || (atMs < lastMs && !isFarAhead(lastMs, atMs))) return
    const silent = onRules(reading)
    metrics.rulesSilent.set({ source }, silent.length)
    const shown = silent.slice(0, silentShownMax).map(({ id, name, text }) => ({ id, name, text }))
    const [count, silentCount] = [rules.length, silent.length]
    this.#change({ rules: { atMs, count, unread, silentCount, silent: shown } })
  }

  polling(nowMs: number): void {
    const { metrics, source } = this.#deps
    metrics.polls.inc({ source, reason: this.#status.nextReason ?? 'first' })
    this.#change({ lastPollAtMs: nowMs })
    // A try is no reason to believe that the person who is needed has acted.
    if (this.#status.state !== 'stopped') this.enter('polling', 'asking the feed')
  }

  polled(result: PollResult, error: PollerStatus['lastError']): void {
    const { metrics, source, clock, log } = this.#deps
    const nowMs = clock.now()
    if (result.ok) metrics.lastPoll.set({ source }, nowMs / 1_000)
    if (result.ok && this.#reportedTrouble !== undefined) {
      log.info({ source, after: this.#reportedTrouble }, 'poller.resumed')
      this.#reportedTrouble = undefined
    }
    this.#change({
      behind: result.behind,
      ...(result.ok ? { lastOkAtMs: nowMs } : {}),
      ...(result.lastCompleteMs === null ? {} : { lastCompleteWalkAtMs: result.lastCompleteMs }),
      ...(error === null ? {} : { lastError: error }),
      doubt: this.#doubtAfter(result.doubt, nowMs),
      failingSinceMs: this.#failingSince(result, error),
    })
    this.#logFailure()
  }

  /** For other replicas; throws what Redis throws. */
  async save(): Promise<void> {
    await this.#store.save({ ...this.#status, savedAtMs: this.#deps.clock.now() })
  }

  /** Logged once, and again only when there was none for a while; the status still shows the first example. */
  #doubtAfter(example: string | null, nowMs: number): PollerStatus['doubt'] {
    const { log, source } = this.#deps
    const { doubt } = this.#status
    const before = doubt !== null && nowMs - doubt.atMs < doubtKeptMs ? doubt : null
    if (example === null) return before
    const text = before?.text ?? `${example}: ${doubtEffect}`
    if (before === null) log.warn({ source }, text)
    return { text, atMs: nowMs }
  }

  #change(fields: Partial<PollerStatus>): void {
    this.#status = { ...this.#status, ...fields }
    const shown = stateLabel(this.#status)
    const { metrics, source } = this.#deps
    if (shown === undefined) return
    for (const state of sourceStates) metrics.sourceState.set({ source, state }, state === shown ? 1 : 0)
  }

  /** A poll that a limit refused changes nothing; one whose first page was good and whose second failed counts as failed. */
  #failingSince(result: PollResult, error: PollerStatus['lastError']): number | null {
    const { failingSinceMs } = this.#status
    if (error === null) return result.ok && result.reason !== 'refused_rest' ? null : failingSinceMs
    return Math.min(failingSinceMs ?? error.atMs, error.atMs)
  }

  #logFailure(): void {
    const { log, source } = this.#deps
    const reason = lastingFailure(this.#status)
    if (reason !== undefined && !this.#failureReported) log.error({ source, reason }, 'poller.failing')
    this.#failureReported = reason !== undefined
  }

  /** Between two attempts nothing has improved: a source that is stopped is logged once, not at every try. */
  #logTrouble(state: PollerState, reason: string): void {
    if (state === this.#reportedTrouble || !(state in troubles)) return
    this.#reportedTrouble = state
    const { log, source } = this.#deps
    log[troubles[state as keyof typeof troubles]]({ source, state, reason }, 'poller.state')
  }
}

/** undefined where another replica may poll: it shows the state. */
function stateLabel(status: PollerStatus): SourceStateLabel | undefined {
  const { state } = status
  if (state === 'starting' || state === 'standby') return undefined
  if (lastingFailure(status) !== undefined) return 'failing'
  if (state === 'polling' || state === 'waiting') return 'polling'
  return state === 'backpressure' ? 'queues_full' : state
}

const silentShownMax = 20
const doubtEffect =
  'such rows count by their place in the feed, and lag, expireAfter and plan do without their dates'
const doubtKeptMs = 24 * 60 * 60 * 1_000

/** States that are logged, and at which level. */
const troubles = {
  stopped: 'error',
  redis_down: 'warn',
  held: 'warn',
  backpressure: 'warn',
  budget_spent: 'warn',
} as const satisfies Partial<Record<PollerState, 'warn' | 'error'>>
