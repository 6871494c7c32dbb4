import { waits } from '../lib/waits.ts'

/**
 * How long a failed alert waits before its next attempt. Owns the shape of the retry schedule; pure.
 *
 * Each pause is `growth` times the one before, from `initialDelayMs` up to `maxDelayMs`, and every one is spread by
 * ±20 % so that alerts that failed together are not tried again together. With the defaults (5 s, 8 h, 11 attempts):
 * 5 s, 16 s, 53 s, 2 m 55 s, 9 m 32 s, 31 m, 1 h 42 m, 5 h 33 m, 8 h, 8 h: 24 hours in all, five of the attempts within
 * the first four minutes or so, where most outages of a receiver end.
 */
export interface RetryPolicy {
  /** Attempts in all, the first included. */
  readonly attempts: number
  readonly initialDelayMs: number
  /** Before the spread. */
  readonly maxDelayMs: number
}

/** A receiver that asks for a longer pause (`Retry-After`) gets the next attempt after this. */
export const retryAfterMsMax: number = waits.receiverHold.maxMs

/** Chosen so that the default policy spans 24 hours. */
const growth = 3.27
const spread = 0.2

/**
 * Milliseconds from the end of attempt `attempt` (from 1) to the next one; `afterMs` is what the remote asked for,
 * `random` gives numbers in [0, 1). Never less than the remote asked for, up to `retryAfterMsMax`.
 */
export function delayMs(
  attempt: number,
  policy: RetryPolicy,
  afterMs?: number,
  random: () => number = Math.random,
): number {
  const own = pauseMs(attempt, policy) * (1 - spread + 2 * spread * random())
  return Math.round(Math.max(own, Math.min(afterMs ?? 0, retryAfterMsMax)))
}

/** The longest pause after attempt `attempt` (from 1), with the most of the spread. */
export function pauseMsMax(attempt: number, policy: RetryPolicy): number {
  return Math.ceil(pauseMs(attempt, policy) * (1 + spread))
}

/** The pauses of a whole schedule without the spread, one fewer than there are attempts. */
export function pausesMs(policy: RetryPolicy): number[] {
  return Array.from({ length: Math.max(0, policy.attempts - 1) }, (_, index) => pauseMs(index + 1, policy))
}

/** How long the pauses of a whole schedule take together: before the spread, and with the most of it. */
export function spanOf(policy: RetryPolicy): { readonly ms: number; readonly msMax: number } {
  const ms = pausesMs(policy).reduce((sum, each) => sum + each, 0)
  return { ms, msMax: Math.ceil(ms * (1 + spread)) }
}

function pauseMs(attempt: number, { initialDelayMs, maxDelayMs }: RetryPolicy): number {
  // For many attempts the power becomes Infinity; the maximum limits it.
  return Math.min(Math.max(maxDelayMs, initialDelayMs), initialDelayMs * growth ** (attempt - 1))
}
