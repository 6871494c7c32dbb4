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

/**
 * What a history is replayed with where no config says otherwise. Live, a config without `poll.minInterval` has 2 s
 * (`config/pace.ts`).
 */
export const scheduleDefaults = {
  minIntervalMs: 1_000,
  maxIntervalMs: 900_000,
  exponent: 0.45,
  floor: 0.2,
  resetsAt: '00:00',
  timeZone: 'Asia/Tehran',
} as const
