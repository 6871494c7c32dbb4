/** What a catch-up may use of the minute for which the API limits requests. */

/** The minute of the rate limit in milliseconds, and a little more: the clocks of two machines differ. */
export const minuteMs = 60_050
/** How often the first page is read during a catch-up, in milliseconds. */
export const freshEveryMs = 5_000
/** The share of the minute that is kept for the first page during a catch-up. */
const freshShare = 0.1

/**
 * How many requests of a minute there may be before a catch-up makes none any more: the first page of each source of the account, and
 * another at the least.
 */
export function walkRequestsOf(requestsPerMinute: number, sources = 1): number {
  return Math.min(requestsPerMinute, Math.max(1 + sources, withoutFresh(requestsPerMinute)))
}

/** The same of lookups, which polls do not wait for: so these always leave a request to a first page. */
export function lookupRequestsOf(requestsPerMinute: number): number {
  return Math.max(1, withoutFresh(requestsPerMinute))
}

function withoutFresh(requestsPerMinute: number): number {
  return Math.floor(requestsPerMinute * (1 - freshShare))
}
