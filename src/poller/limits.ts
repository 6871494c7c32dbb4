import { leaseTtlMs } from '../store/lease.ts'

/** The numbers of a poller: those that a config names, and pauses that tests shorten. */
export interface PollerLimits {
  readonly unitsPerDay: number
  readonly minIntervalMs: number
  readonly maxIntervalMs: number
  /** Pages of the past that a cold start may buy, once, so that the plan knows when alerts fire. */
  readonly historyPages?: number
  /** The largest share of a day's units that sweeps may spend; left out, all that would expire. */
  readonly sweepShare?: number
  readonly leaseTtlMs?: number
  /** How long the page under way may still take after the signal aborted. */
  readonly drainTimeoutMs?: number
  /** How often a source is tried whose token or feed a person must mend. */
  readonly stoppedIntervalMs?: number
  /** How often the queues are looked at again while they are too full. */
  readonly backpressureIntervalMs?: number
  /** The pause after the loop itself threw, doubled each time up to a minute. */
  readonly restartDelayMs?: number
}

/** Waits that no config names. */
export const pauses = {
  restartMsMax: 60_000,
  redisMs: 1_000,
  /** Long waits look up now and then: whether a person asked for something, the clock was set, Redis went away. */
  lookUpMs: 10_000,
} as const

export function withDefaults(limits: PollerLimits): Required<PollerLimits> {
  return {
    historyPages: 0,
    sweepShare: 1,
    leaseTtlMs,
    drainTimeoutMs: 10_000,
    stoppedIntervalMs: 5 * 60_000,
    backpressureIntervalMs: 5_000,
    restartDelayMs: 5_000,
    ...limits,
  }
}
