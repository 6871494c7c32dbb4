/**
 * Tells when a consumer is dead without saying so: jobs wait, nothing holds them back, and nobody takes one. (Consumers
 * have been seen to stop after an outage of Redis while claiming to run.) Pure.
 */
export interface QueueView {
  readonly waiting: number
  readonly active: number
  readonly paused: boolean
  /** Held or at its rate limit. */
  readonly limited: boolean
}

/** Since when the queue looks stuck; undefined while it does not. */
export function stuckSince(
  view: QueueView | undefined,
  sinceMs: number | undefined,
  nowMs: number,
): number | undefined {
  // A queue that cannot be looked at says nothing: an outage is no dead consumer.
  if (!view || view.waiting === 0 || view.active > 0 || view.paused || view.limited) return undefined
  return sinceMs ?? nowMs
}
