/** What a catch-up may use of the minute for which the API limits requests. */

/** The minute of the rate limit in milliseconds, and a little more: the clocks of two machines differ. */
export const minuteMs = 60_050
/** How often the first page is read during a catch-up, in milliseconds. */
export const freshEveryMs = 5_000
/** The share of the minute that is kept for the first page during a catch-up. */
const freshShare = 0.1

/** How many requests of a minute there may be before a catch-up makes none any more: its first page and another at the least. */
export function walkRequestsOf(requestsPerMinute: number): number {
  return Math.min(requestsPerMinute, Math.max(2, Math.floor(requestsPerMinute * (1 - freshShare))))
}
