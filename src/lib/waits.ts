/**
 * Every wait that somebody outside this process can set, and the longest that the bridge waits: without that limit, one
 * wrong figure stops a source or a sink for ever. Durations of the config have theirs in its schema (`durationWithin`).
 * config/README.md lists them.
 */
interface NamedWait {
  /** Who sets it, as config/README.md names it. */
  readonly namedBy: string
  readonly what: string
  readonly maxMs: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

export const waits = {
  /** A budget day, the longest there is. */
  apiHold: {
    namedBy: 'the API',
    what: 'a 429 with `Retry-After` or `detail.retryAfter`, whichever call met it; also one that Redis still holds',
    maxMs: 25 * hourMs,
  },
  receiverHold: {
    namedBy: 'a receiver',
    what: '`Retry-After`, or `retry_after` of Telegram and Discord',
    maxMs: hourMs,
  },
  hot: { namedBy: 'an operator', what: 'more polls of a source (`hot`)', maxMs: dayMs },
  silence: {
    namedBy: 'an operator',
    what: 'a silence, from its start, and the time until it starts; a pause of a sink `for` a time',
    maxMs: 366 * dayMs,
  },
  lease: {
    namedBy: 'Redis',
    what: 'the lease of another replica, after its clock was set back',
    maxMs: 60_000,
  },
  /** More than a clock that was set back by a day, and the longest plan, make together. */
  ahead: {
    namedBy: 'Redis',
    what: 'an instant of the plan, the budget or the status: one that is further ahead is not believed',
    maxMs: 2 * dayMs,
  },
} as const satisfies Record<string, NamedWait>

/** Whether a stored instant is too far in the future to be used: it was written by a clock that was ahead. */
export function isFarAhead(instantMs: number, nowMs: number): boolean {
  return instantMs > nowMs + waits.ahead.maxMs
}
