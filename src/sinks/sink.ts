import type { Alert } from '../alert/alert.ts'
import type { Outcome } from './outcome.ts'

/**
 * A place alerts are sent to. A sink makes one attempt and tells one outcome; it never retries, counts or sleeps: pace,
 * retries, dead letters and metrics are delivery's. It never throws for what a remote did; a throw is a bug.
 */
export interface Sink {
  readonly name: string
  readonly type: string
  /** Each target gets a job of its own (email: one a recipient). Sinks with a single target have `[undefined]`. */
  readonly targets: readonly (string | undefined)[]
  send(alert: Alert, attempt: Attempt): Promise<Outcome>
  /** Closes pooled connections; sends that still run are aborted by their signal, not by this. */
  close(): Promise<void>
}

export interface Attempt {
  readonly target?: string
  /** From 1. */
  readonly number: number
  /** Aborts at shutdown or when the job's lock is lost. The sink adds its own timeout. */
  readonly signal: AbortSignal
  readonly nowMs: number
  /** How many alerts like this one a throttle held back before it; left out: none. */
  readonly heldBack?: number
}
