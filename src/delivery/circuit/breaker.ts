import { given } from '../../lib/given.ts'
import { pausesMs } from '../backoff.ts'
import type { QueueSettings, Tuning } from '../settings.ts'

/**
 * The circuit breaker of one sink. Pure: takes each attempt, returns the next state and how long to hold the sink's
 * queue. It opens when `faultsToOpen` attempts in a row failed because of the sink, with at least two alerts: a sink that
 * fails over one alert may accept the others, unless it has seen nothing of that one. While it is open, a few probes are sent
 * one after the other, then it pauses, each time twice as long, up to `pauseMsMax`. The first answer closes it.
 *
 * Every process has its own; what they share is the held queue, how often each alert was tried and, in Redis, that the sink is
 * down (`circuit.ts`). An attempt is counted only when it was due by its alert's own schedule, which the job's own field says. So the
 * breaker can make an alert wait longer, but an alert is never given up on sooner because of it.
 */
export type Breaker =
  | {
      readonly state: 'closed'
      /** Faults since the last answer, and whether no single alert may be why: they came from two, or two of them are about none. */
      readonly faults: number
      readonly several: boolean
      /** The last alert that may be why, and whether one of the faults is about none. */
      readonly alert?: string
      readonly ofNone?: boolean
      readonly lastFault?: LastFault
    }
  | OpenBreaker

interface OpenBreaker {
  readonly state: 'open'
  readonly reason: string
  /** Absent where another process opened it, and no probe of this one has failed yet. */
  readonly lastFault?: LastFault
  /** By the wall clock, for people. */
  readonly sinceMs: number
  /** The pause that runs, and when it began. */
  readonly pauseMs: number
  readonly heldAtMs: number
  /** Probes that failed since it opened. */
  readonly probes: number
}

/** The last attempt that failed because of the sink, by the wall clock. */
interface LastFault {
  readonly atMs: number
  readonly text: string
}

/** As a process shows it. */
export interface CircuitState {
  readonly breaker: 'open' | 'closed'
  readonly reason?: string
  readonly openSinceMs?: number
  /** Until when the hold lasts that this process put on the queue. */
  readonly heldUntilMs?: number
  readonly lastFault: Breaker['lastFault']
}

/** What an attempt says about its sink: it answered, it is at fault, or nothing either way. */
export type SinkSignal = 'answered' | 'fault' | 'none'

export interface BreakerEvent {
  readonly signal: SinkSignal
  /** The sink refuses everybody, or asks to wait. That opens no breaker, but of one that was down it does not say that it is back. */
  readonly refuses?: boolean
  /**
   * Any name that is different for each alert; of one that goes to several, the same where its content may be at fault. Undefined: no
   * single alert may be at fault, as where nobody listens, or in a message of several that had no answer.
   */
  readonly alert: string | undefined
  /** Where no single alert may be at fault: how often this one was tried, by whichever process. None of these was an answer either. */
  readonly attempts?: number
  readonly reason: string
  /** By the monotonic clock. */
  readonly startedAtMs: number
}

export interface BreakerLimits {
  readonly faultsToOpen: number
  /** Probes between two pauses. */
  readonly probesARound: number
  readonly firstPauseMs: number
  readonly pauseMsMax: number
}

/** Pauses are never longer than those of the sink's own retry policy. */
export function limitsFor({ settings, tuning }: BreakerSettings): BreakerLimits {
  const { initialDelayMs } = settings.retry
  const longestMs = pausesMs(settings.retry).at(-1) ?? initialDelayMs
  return {
    faultsToOpen: tuning.faultsToOpen,
    probesARound: tuning.probesARound,
    firstPauseMs: Math.min(initialDelayMs, tuning.probePauseMsMax),
    pauseMsMax: Math.min(longestMs, tuning.probePauseMsMax),
  }
}

interface BreakerSettings {
  readonly settings: Pick<QueueSettings, 'retry'>
  readonly tuning: Tuning
}

interface BreakerStep {
  readonly breaker: Breaker
  readonly change?: 'opened' | 'closed'
  /** Hold the sink's queue for so long. */
  readonly holdMs?: number
}

/** The same moment by both clocks. */
export interface ClockReading {
  readonly wallMs: number
  readonly monotonicMs: number
}

export const closedBreaker: Breaker = { state: 'closed', faults: 0, several: false }

export function openBreaker(
  { reason, sinceMs }: Pick<OpenBreaker, 'reason' | 'sinceMs'>,
  { firstPauseMs }: BreakerLimits,
  heldAtMs: number,
): OpenBreaker {
  return { state: 'open', reason, sinceMs, pauseMs: firstPauseMs, heldAtMs, probes: 0 }
}

export function afterAttempt(
  breaker: Breaker,
  event: BreakerEvent,
  limits: BreakerLimits,
  now: ClockReading,
): BreakerStep {
  switch (event.signal) {
    case 'none':
      return breaker.state === 'open' && event.refuses
        ? failedProbe(breaker, event, limits, now)
        : { breaker }
    case 'answered':
      return breaker.state === 'open'
        ? { breaker: closedBreaker, change: 'closed' }
        : { breaker: closedBreaker }
    case 'fault':
      return breaker.state === 'open'
        ? failedProbe(breaker, event, limits, now)
        : fault(breaker, event, limits, now)
    default:
      return event.signal satisfies never
  }
}

function fault(
  breaker: Extract<Breaker, { state: 'closed' }>,
  { alert, attempts = 0, reason }: BreakerEvent,
  limits: BreakerLimits,
  { wallMs, monotonicMs }: ClockReading,
): BreakerStep {
  const faults = breaker.faults + 1
  const lastFault = { atMs: wallMs, text: reason }
  const [ofNone, isAnother] =
    alert === undefined
      ? [true, breaker.ofNone === true]
      : [breaker.ofNone, breaker.alert !== undefined && breaker.alert !== alert]
  const several = breaker.several || isAnother
  // Other processes made some of its attempts, or this one before it was started anew. One fault alone may be a moment's.
  if (Math.max(faults, attempts) < limits.faultsToOpen || !several)
    return {
      breaker: {
        state: 'closed',
        faults,
        several,
        lastFault,
        ...given({ alert: alert ?? breaker.alert, ofNone }),
      },
    }
  const open = { ...openBreaker({ reason, sinceMs: wallMs }, limits, monotonicMs), lastFault }
  return { breaker: open, change: 'opened', holdMs: open.pauseMs }
}

function failedProbe(
  breaker: OpenBreaker,
  { reason, startedAtMs }: BreakerEvent,
  { pauseMsMax, probesARound }: BreakerLimits,
  { wallMs, monotonicMs }: ClockReading,
): BreakerStep {
  // This send began before the queue was held: it is no probe.
  if (startedAtMs <= breaker.heldAtMs) return { breaker }
  const probes = breaker.probes + 1
  const failed = { ...breaker, reason, probes, lastFault: { atMs: wallMs, text: reason } }
  if (probes % probesARound !== 0) return { breaker: failed }
  const pauseMs = Math.min(breaker.pauseMs * 2, Math.max(pauseMsMax, breaker.pauseMs))
  return { breaker: { ...failed, pauseMs, heldAtMs: monotonicMs }, holdMs: pauseMs }
}
