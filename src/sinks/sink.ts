import type { Alert } from '../alert/alert.ts'
import { type AlertContext, isContextName, type SkipReason } from '../alert/context.ts'
import { given } from '../lib/given.ts'
import type { Outcome } from './outcome.ts'

/**
 * A destination of alerts. A sink makes one attempt and returns one outcome; it never retries, counts or sleeps: rate
 * limits, retries, dead letters and metrics are done by `delivery/`. It never throws because of a receiver: a throw is a
 * bug.
 */
export interface Sink {
  readonly name: string
  readonly type: string
  /** Each target gets a job of its own (email: one a recipient). Sinks with a single target have `[undefined]`. */
  readonly targets: readonly (string | undefined)[]
  send(alert: Alert, attempt: Attempt): Promise<Outcome>
  /** Present where the config asks for several alerts in one message. */
  readonly batch?: Batch
  /** Closes pooled connections; sends that still run are aborted by their signal, not by this. */
  close(): Promise<void>
}

export interface Attempt {
  readonly target?: string
  /** How many alerts like this one were held back before it. */
  readonly heldBack?: number
  /** When an operator asked for it to be sent (again), in milliseconds since the epoch. */
  readonly requestedAtMs?: number
  /** What the API's other endpoints know about it, where a route asks for that. */
  readonly context?: AlertContext
  /** From 1. */
  readonly number: number
  /** Aborts at shutdown or when the job's lock is lost. The sink adds its own timeout. */
  readonly signal: AbortSignal
  readonly nowMs: number
}

/** Several alerts to one target as one message, with one outcome for all of them. */
export interface Batch {
  readonly plan: BatchPlan
  /** Which of these alerts share a message, so that each is within the receiver's limits and no text is left out. */
  split<P extends Parcel>(parcels: readonly P[]): P[][]
  /** At least two alerts that `split` put together, oldest first. */
  send(parcels: readonly Parcel[], attempt: BatchAttempt): Promise<Outcome>
}

export type BatchAttempt = Omit<Attempt, 'heldBack' | 'requestedAtMs' | 'context'>

export type Parcel = { readonly alert: Alert } & Pick<Attempt, 'heldBack' | 'requestedAtMs' | 'context'>

/** When delivery puts alerts together; in milliseconds. */
export type BatchPlan =
  /** After so many single alerts within a window, the next ones wait for the end of a window and are sent as one message. */
  | { readonly kind: 'burst'; readonly max: number; readonly after: number; readonly windowMs: number }
  /** All alerts wait for the next mark: a full multiple of `everyMs` since midnight in this zone. */
  | { readonly kind: 'digest'; readonly max: number; readonly everyMs: number; readonly timeZone: string }

export function parcelOf(alert: Alert, { heldBack, requestedAtMs, context }: Omit<Parcel, 'alert'>): Parcel {
  return { alert, ...given({ heldBack, requestedAtMs, context }) }
}

/** The same without what it has of its context, which counts as skipped; undefined where it has nothing of it. */
export function withoutContext({ context, ...parcel }: Parcel, why: SkipReason): Parcel | undefined {
  const names = Object.keys(context?.parts ?? {}).filter(isContextName)
  if (context === undefined || names.length === 0) return undefined
  const skipped = [...context.skipped, ...names.map((what) => ({ what, why }))]
  return { ...parcel, context: { ...context, parts: {}, skipped } }
}
