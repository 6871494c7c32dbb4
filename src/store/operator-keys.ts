import { hashTag } from './keys.ts'

/** Keys of what operators do and look for; the same rules as in `keys.ts`. */

/** HASH, sink → JSON of until when it is paused, and why. No expiry. Lost: a paused sink stays so until somebody resumes it. */
export function pausesKey(prefix: string): string {
  return `${hashTag(prefix)}:pauses`
}

/**
 * ZSET, `SOURCE.ID` → when the alert fired (ms; when it was first seen where that is not known), of alerts that have a record. Those
 * whose records are gone are removed by samples as others come, so at most about a quarter are such. Lost: these alerts are found by
 * their id, not by a search.
 */
export function firedAlertsKey(prefix: string): string {
  return `${hashTag(prefix)}:fired`
}

/** LIST, JSON of what operators did, the newest first, at most 1,000. No expiry. Lost: nobody can look it up. */
export function auditKey(prefix: string): string {
  return `${hashTag(prefix)}:audit`
}

/**
 * HASH, number of a quarter of an hour in its day → `quarter queued sends sendMs`: what the page draws of a sink's last day. At most 96
 * fields; expires a day after the last. Lost: there is no curve.
 */
export function sinkQuartersKey(prefix: string, sink: string): string {
  return `${hashTag(prefix)}:quarters:${sink}`
}

/** HASH, id → JSON of the silence. No expiry; the next `list` removes those that have ended. Lost: silenced alerts are sent. */
export function silencesKey(prefix: string): string {
  return `${hashTag(prefix)}:silences`
}

/**
 * STRING, JSON: a digest of a request that named this key (`Idempotency-Key`), when it was begun, and its answer; or a
 * number that such a request keeps, under its name. Expires `idempotencyKeptMs` after its last change. Lost: the request is
 * carried out again when it is sent again.
 */
export function idempotencyKey(prefix: string, digest: string): string {
  return `${hashTag(prefix)}:request:${digest}`
}
