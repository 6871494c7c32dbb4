import { type Alert, alertKey } from '../../alert/alert.ts'
import type { DeliveryJob } from '../../alert/job.ts'
import { cut } from '../../alert/text/text.ts'
import { given } from '../../lib/given.ts'
import type { Answer, DeadReason, Outcome, RetryReason } from '../../sinks/outcome.ts'
import { delayMs, retryAfterMsMax } from '../backoff.ts'
import type { BreakerEvent, SinkSignal } from '../circuit/breaker.ts'
import { expireDefaultMs, type SinkSettings } from '../settings.ts'

/** What follows an outcome: decided here, from data alone; the worker only carries it out. */
export type FollowUp =
  | { readonly kind: 'delivered'; readonly answer: Answer }
  | {
      readonly kind: 'again'
      readonly reason: RetryReason
      readonly answer: Answer
      readonly delayMs: number
      /** Whether this was one of the attempts that the policy allows. */
      readonly burnt: boolean
      /** When the alert is due by its own schedule, from now; absent where the job's own field says so already. */
      readonly dueInMs?: number
      /** Nothing else goes to this sink for so long. */
      readonly holdMs?: number
    }
  | { readonly kind: 'dead'; readonly reason: DeadReason; readonly answer: Answer }
  /** This process aborted the attempt: the job goes back to the queue as if it had not been taken. */
  | { readonly kind: 'back'; readonly answer: Answer }

interface AttemptFacts {
  /** From 1. */
  readonly number: number
  /** When the alert becomes too old to be sent. */
  readonly expiresAtMs: number
  /** How much earlier than by its own schedule it was sent: as a probe, or because the sink answers again. */
  readonly earlyMs?: number
  /** Shutdown, or another process has the job. */
  readonly brokenOff: boolean
  readonly nowMs: number
}

/**
 * Where the config says how old an alert may be, its age counts from when it fired; from when it was seen where that is
 * unknown or in the future. Else from when it was seen. And from when an operator asked for it, who knows that it is old.
 */
export function expiresAtMs(job: DeliveryJob, settings: SinkSettings): number {
  const { expireAfterMs } = settings
  const { seenAtMs } = job
  if (expireAfterMs === undefined) return (job.requestedAtMs ?? seenAtMs) + expireDefaultMs(settings)
  return (job.requestedAtMs ?? Math.min(job.alert.firedAtMs ?? seenAtMs, seenAtMs)) + expireAfterMs
}

/**
 * An attempt counts only when it was due by the alert's own schedule. So an alert is given up on after all attempts and
 * the whole time of its schedule, however often its sink was down. A refusal that names its pause (429 with
 * `Retry-After`) holds the whole queue and does not count: the sink works and asks to wait, which `expireAfter` bounds.
 * Every other failure counts.
 */
export function followUpOf(
  outcome: Outcome,
  at: AttemptFacts,
  settings: SinkSettings,
  random?: () => number,
): FollowUp {
  const { answer } = outcome
  switch (outcome.kind) {
    case 'delivered':
      return { kind: 'delivered', answer }
    case 'dead':
      return { kind: 'dead', reason: outcome.reason, answer }
    case 'retry':
      if (outcome.reason === 'aborted' && at.brokenOff) return { kind: 'back', answer }
      return retryFollowUp(outcome, at, settings, random)
    default:
      return outcome satisfies never
  }
}

/** Whether an alert is given up on if this attempt fails, as far as it depends on the alert. */
export function isLastAttempt(
  { number, nowMs, expiresAtMs: endMs }: Pick<AttemptFacts, 'number' | 'nowMs' | 'expiresAtMs'>,
  { retry }: SinkSettings,
): boolean {
  return number >= retry.attempts || endMs - nowMs <= lastChanceMs
}

/** Why a sink did not take it, with its own words, as operators are shown it. */
export function faultText(outcome: Outcome): string {
  if (outcome.kind === 'delivered') return 'delivered'
  const said = answerText(outcome.answer)
  return cut(said === '' ? outcome.reason : `${outcome.reason}: ${said}`, faultTextMax)
}

export function answerText(
  { status, text }: { readonly status?: number | undefined; readonly text: string },
  reason?: string,
): string {
  return [reason, status, text].filter((part) => part !== undefined && part !== '').join(' ')
}

const faultTextMax = 200

/** What an outcome says about the sink, for its breaker. */
export function signalOf(outcome: Outcome): SinkSignal {
  if (outcome.kind === 'delivered') return 'answered'
  // A final refusal makes a dead letter at once, also where the sink is at fault: no other alert waits because of it.
  if (outcome.kind === 'dead') return outcome.sinkFault ? 'none' : 'answered'
  return outcome.sinkFault && outcome.reason !== 'rate_limited' ? 'fault' : 'none'
}

/** It refuses everything, or asks to wait. */
function refuses(outcome: Outcome): true | undefined {
  if (outcome.kind === 'delivered') return undefined
  return (outcome.kind === 'dead' && outcome.sinkFault) || outcome.reason === 'rate_limited' || undefined
}

/**
 * What an attempt tells the sink's breaker. A mail that is put off for each recipient may be put off for what it says: that is one
 * alert. What the receiver has not seen is about none, also where only one waits.
 */
export function signOf(
  { outcome, isShared }: { readonly outcome: Outcome; readonly isShared: boolean },
  alert: Alert,
  { jobId, number }: { readonly jobId: string; readonly number: number },
): Omit<BreakerEvent, 'startedAtMs'> {
  const isOneAlert = outcome.kind !== 'delivered' && mayBeItsContent(outcome)
  const isNone = isShared || (outcome.kind === 'retry' && outcome.unread === true)
  const name = isOneAlert ? alertKey(alert) : isNone ? undefined : jobId
  const attempts = name === undefined ? number : undefined
  const more = given({ attempts, refuses: refuses(outcome) })
  return { signal: signalOf(outcome), alert: name, reason: faultText(outcome), ...more }
}

/** An answer to a message may be about its content; a sink that does not answer, or asks to wait, has not read it. */
export function mayBeItsContent(outcome: Exclude<Outcome, { kind: 'delivered' }>): boolean {
  if (outcome.kind === 'dead') return !outcome.sinkFault
  const { reason, afterMs, unread = false } = outcome
  return !unread && afterMs === undefined && (reason === 'server_error' || reason === 'bad_answer')
}

/** Where a sink answers 429 without `Retry-After`, the pause is its own backoff, up to this. */
const unaskedHoldMsMax = 60_000
/** The last attempt is made so long before the alert expires, or a tenth of the time left where that is shorter. */
const lastChanceMs = 60_000

function retryFollowUp(
  outcome: Extract<Outcome, { kind: 'retry' }>,
  at: AttemptFacts,
  settings: SinkSettings,
  random?: () => number,
): FollowUp {
  const { reason, answer, afterMs } = outcome
  const { retry } = settings
  const askedMs =
    afterMs === undefined ? undefined : Math.min(Math.max(afterMs, retry.initialDelayMs), retryAfterMsMax)
  const { earlyMs = 0 } = at
  if (reason === 'rate_limited' && askedMs !== undefined) {
    const dueInMs = Math.max(askedMs, earlyMs)
    return { kind: 'again', reason, answer, delayMs: askedMs, holdMs: askedMs, dueInMs, burnt: false }
  }
  if (earlyMs > 0) {
    const delayMs = Math.max(earlyMs, askedMs ?? 0)
    const hold = askedMs === undefined ? {} : { holdMs: askedMs, dueInMs: delayMs }
    return { kind: 'again', reason, answer, delayMs, burnt: false, ...hold }
  }
  if (at.number >= retry.attempts) return { kind: 'dead', reason: 'attempts_exhausted', answer }
  const leftMs = at.expiresAtMs - at.nowMs
  if (leftMs <= Math.min(retry.initialDelayMs, lastChanceMs))
    return { kind: 'dead', reason: 'expired', answer }
  const ownMs = delayMs(at.number, retry, askedMs, random)
  const holdMs = askedMs ?? (reason === 'rate_limited' ? Math.min(ownMs, unaskedHoldMsMax) : undefined)
  // A pause beyond the time at which the alert expires is shortened, so that there is a last attempt before it.
  const pauseMs = Math.max(askedMs ?? 0, Math.min(ownMs, leftMs - Math.min(lastChanceMs, leftMs / 10)), 1)
  return {
    kind: 'again',
    reason,
    answer,
    burnt: true,
    delayMs: pauseMs,
    dueInMs: pauseMs,
    ...(holdMs === undefined ? {} : { holdMs }),
  }
}
