import type { Purpose } from '../../telemetry/metrics.ts'

/** What a catch-up, lookups and spare pages may use of the minute for which the API limits requests. */

/** The minute of the rate limit in milliseconds, and a little more: the clocks of two machines differ. */
export const rateMinuteMs = 60_050
/** How often the first page is read during a catch-up, in milliseconds. */
export const freshEveryMs = 5_000
/** The share of the minute that is kept for the first page during a catch-up. */
const freshShare = 0.1

/** What is no poll and asked for by an alert or a person; counted as one. */
export const lookups: readonly Purpose[] = ['context', 'api']
/** Pages that no poll waits for: sweeps, and the past on a cold start. */
const spare: readonly Purpose[] = ['sweep', 'history']

/** How many requests of a minute there may be before none is made for this purpose any more, so that the others are left to polls. */
export function besidePolls(purpose: Purpose, requestsPerMinute: number, sources?: number): number {
  if (spare.includes(purpose)) return spareRequestsOf(requestsPerMinute)
  if (lookups.includes(purpose)) return lookupRequestsOf(requestsPerMinute)
  return walkRequestsOf(requestsPerMinute, sources)
}

/** Of a catch-up; beside the first page of each source of the account there is another at the least. */
export function walkRequestsOf(requestsPerMinute: number, sources = 1): number {
  return Math.min(requestsPerMinute, Math.max(1 + sources, withoutFresh(requestsPerMinute)))
}

/** Polls do not wait for lookups: so these always leave a request to a first page. */
function lookupRequestsOf(requestsPerMinute: number): number {
  return Math.max(1, withoutFresh(requestsPerMinute))
}

/**
 * What these leave is there for whatever comes within the next minute: polls that become more frequent, a catch-up, a reload. With a
 * third, 30 requests a minute read 200 pages beside a poll each half minute in the half hour that a sweep has. One beside a poll where
 * there are few requests; never the last one.
 */
function spareRequestsOf(requestsPerMinute: number): number {
  return Math.max(Math.min(2, requestsPerMinute - 1), Math.ceil(requestsPerMinute * spareShare))
}

const spareShare = 1 / 3

function withoutFresh(requestsPerMinute: number): number {
  return Math.floor(requestsPerMinute * (1 - freshShare))
}
