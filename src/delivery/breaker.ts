/**
 * The circuit breaker of one sink: pure, told of every attempt, answers with the next state and with how long the
 * sink's queue is to be held. It opens when `faultsToOpen` attempts in a row met a sink that is at fault, over at least
 * two alerts: one alert that a sink cannot digest says nothing about the others. While it is open one probe at a time
 * goes out, with pauses that double; the first answer closes it.
 *
 * Every process has its own; what they share is the held queue. An attempt is burnt only when its alert's own
 * schedule had made it due, which its job says, so the breaker can delay an alert's end but never hasten it.
 */
export type Breaker =
  | {
      readonly state: 'closed'
      /** Faults since the last answer, and whether they came from more than one alert. */
      readonly faults: number
      readonly alert?: string
      readonly several: boolean
    }
  | {
      readonly state: 'open'
      readonly reason: string
      readonly sinceMs: number
      /** The pause that runs, and when it began. */
      readonly pauseMs: number
      readonly heldAtMs: number
    }

/** What an attempt says about its sink: it answered, it is at fault, or nothing either way. */
export type SinkSign = 'answered' | 'fault' | 'none'

export interface BreakerEvent {
  readonly sign: SinkSign
  /** Any name that tells one alert from another. */
  readonly alert: string
  readonly reason: string
  readonly startedAtMs: number
}

export interface BreakerLimits {
  readonly faultsToOpen: number
  readonly firstPauseMs: number
  readonly pauseMsMax: number
}

export interface BreakerStep {
  readonly breaker: Breaker
  readonly change?: 'opened' | 'closed'
  /** Hold the sink's queue for so long. */
  readonly holdMs?: number
}

export const closedBreaker: Breaker = { state: 'closed', faults: 0, several: false }

export function afterAttempt(
  breaker: Breaker,
  event: BreakerEvent,
  limits: BreakerLimits,
  nowMs: number,
): BreakerStep {
  switch (event.sign) {
    case 'none':
      return { breaker }
    case 'answered':
      return breaker.state === 'open'
        ? { breaker: closedBreaker, change: 'closed' }
        : { breaker: closedBreaker }
    case 'fault':
      return breaker.state === 'open'
        ? failedProbe(breaker, event, limits, nowMs)
        : fault(breaker, event, limits, nowMs)
    default:
      return event.sign satisfies never
  }
}

function fault(
  breaker: Extract<Breaker, { state: 'closed' }>,
  { alert, reason }: BreakerEvent,
  limits: BreakerLimits,
  nowMs: number,
): BreakerStep {
  const faults = breaker.faults + 1
  const several = breaker.several || (breaker.alert !== undefined && breaker.alert !== alert)
  if (faults < limits.faultsToOpen || !several)
    return { breaker: { state: 'closed', faults, alert, several } }
  const pauseMs = limits.firstPauseMs
  return {
    breaker: { state: 'open', reason, sinceMs: nowMs, pauseMs, heldAtMs: nowMs },
    change: 'opened',
    holdMs: pauseMs,
  }
}

function failedProbe(
  breaker: Extract<Breaker, { state: 'open' }>,
  { reason, startedAtMs }: BreakerEvent,
  { pauseMsMax }: BreakerLimits,
  nowMs: number,
): BreakerStep {
  // It was on its way already when the queue was held: it tells what is known.
  if (startedAtMs <= breaker.heldAtMs) return { breaker }
  const pauseMs = Math.min(breaker.pauseMs * 2, Math.max(pauseMsMax, breaker.pauseMs))
  return { breaker: { ...breaker, reason, pauseMs, heldAtMs: nowMs }, holdMs: pauseMs }
}
