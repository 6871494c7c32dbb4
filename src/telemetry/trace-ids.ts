import { createHash } from 'node:crypto'

/**
 * Ids of W3C Trace Context that follow from what they are ids of: the same alert has the same trace in every process, after a
 * restart and after a retry, and nothing has to be stored for that.
 */
export interface TracedAttempt {
  readonly alert: { readonly source: string; readonly id: number }
  readonly sink: string
  readonly target?: string | undefined
  /** From 1. */
  readonly number: number
  /** An operator's order makes attempts of its own. */
  readonly requestedAtMs?: number | undefined
}

export function traceIdOf({ source, id }: TracedAttempt['alert']): string {
  return hexOf(32, 'trace', source, id)
}

/** Of the span from firing to found, which is the first of its trace. */
export function firstSpanIdOf({ source, id }: TracedAttempt['alert']): string {
  return hexOf(16, 'found', source, id)
}

export function attemptSpanIdOf({ alert, sink, target, number, requestedAtMs }: TracedAttempt): string {
  return hexOf(16, 'attempt', alert.source, alert.id, sink, target ?? '', number, requestedAtMs ?? '')
}

/** The header of the request that an attempt makes; `01`: the span is recorded. */
export function traceparentOf(attempt: TracedAttempt): string {
  return `00-${traceIdOf(attempt.alert)}-${attemptSpanIdOf(attempt)}-01`
}

function hexOf(length: number, ...parts: readonly (string | number)[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, length)
}
