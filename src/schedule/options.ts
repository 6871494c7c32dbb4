/** What a schedule is made of: the part of a source's config that decides when to poll. */
export interface ScheduleOptions {
  readonly unitsPerDay: number
  readonly minIntervalMs: number
  readonly maxIntervalMs: number
  /** A fixed pace, instead of anything learned. */
  readonly everyMs?: number
  /** Polls follow the expected alerts to this power: 0.5 serves the mean delay, less serves the tail. */
  readonly exponent: number
  /**
   * The slowest pace, as a share of the even one: 0.2 means that no gap is over five even intervals while there are units
   * for that.
   */
  readonly floor: number
  readonly activeHours?: ActiveHours
  /** Dates (`YYYY-MM-DD`, in the zone of the active hours) on which the market is closed. */
  readonly holidays: readonly string[]
  /** `HH:MM` on the wall clock of `timeZone`: when the budget starts anew. */
  readonly resetsAt: string
  readonly timeZone: string
}

export type Weekday = 'sun' | 'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat'

/** In the order of `Date.getUTCDay`. */
export const weekdays: readonly Weekday[] = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

export interface ActiveHours {
  readonly days: readonly Weekday[]
  /** `HH:MM`; a span that ends before it begins runs over midnight. */
  readonly from: string
  readonly to: string
  readonly timeZone: string
}

/** The longest gap of every source that has units for it, and the pause that suits a server, where the budget asks for no other. */
const usualMs = { shortest: 2_000, longest: 900_000 }
/** A large budget is spent only if polls may come ten times as fast as evenly: an opening bell asks for up to nine times. */
const fastestFactor = 10
/** Below 480 units a day the longest gap follows from the floor: market at 10 to 100 units 0.45 to 0.53 of even, 0.84 to 1.03 with 15 minutes. */
const slowestFactor = 5

/** The intervals that hold where no config names any, in milliseconds. */
export function usualIntervals(budget: { readonly unitsPerDay: number; readonly requestsPerMinute: number }) {
  const evenMs = 86_400_000 / budget.unitsPerDay
  const fastestMs = Math.max(1, Math.floor(evenMs / fastestFactor))
  return {
    minIntervalMs: Math.max(
      Math.min(usualMs.shortest, fastestMs),
      wholeSeconds(60_000 / budget.requestsPerMinute),
    ),
    maxIntervalMs: usualLongestMs(budget.unitsPerDay),
  }
}

export function usualLongestMs(unitsPerDay: number): number {
  return Math.max(usualMs.longest, wholeSeconds((slowestFactor * 86_400_000) / unitsPerDay))
}

/** Rounded up, to a whole second where it is longer than one. */
export function wholeSeconds(ms: number): number {
  return ms <= 1_000 ? Math.ceil(ms) : Math.ceil(ms / 1_000) * 1_000
}
