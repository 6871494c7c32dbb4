/**
 * One account's two limits: requests a minute, and units a day. A refused call costs nothing, so that `unitsUsed` is
 * what the account was really charged and never passes the budget.
 */
export interface Limits {
  /** Counts a request of this minute; when none is left, says how long to wait (seconds). */
  takeRequest(nowMs: number): Admission
  /** Counts units of this day; when not enough are left, says how long it is until the reset (seconds). */
  takeUnits(units: number, nowMs: number): Admission
  unitsUsed(nowMs: number): number
}

type Admission = { readonly ok: true } | { readonly ok: false; readonly retryAfterS: number }

interface LimitOptions {
  readonly requestsPerMinute: number
  /** `sliding`: any 60 seconds; `fixed`: from full minute to full minute. */
  readonly minuteWindow: 'sliding' | 'fixed'
  readonly unitsPerDay: number
  /** The first reset after `nowMs`, in milliseconds since the epoch. */
  readonly nextReset: (nowMs: number) => number
}

const minuteMs = 60_000
const dayMs = 86_400_000
/** Iran has kept one offset all year since 2022. */
const zoneOffsetMs = { UTC: 0, 'Asia/Tehran': 3.5 * 3_600_000 } as const
export type ResetZone = keyof typeof zoneOffsetMs

/** The next midnight in `zone`. */
export function nextMidnight(zone: ResetZone, nowMs: number): number {
  const offsetMs = zoneOffsetMs[zone]
  return (Math.floor((nowMs + offsetMs) / dayMs) + 1) * dayMs - offsetMs
}

export function createLimits(options: LimitOptions): Limits {
  const { requestsPerMinute, minuteWindow, unitsPerDay, nextReset } = options
  let requestsMs: number[] = []
  let used = 0
  let resetMs = 0
  const rollOver = (nowMs: number) => {
    if (nowMs < resetMs) return
    used = 0
    resetMs = nextReset(nowMs)
  }
  return {
    takeRequest(nowMs) {
      const windowStartMs =
        minuteWindow === 'fixed' ? Math.floor(nowMs / minuteMs) * minuteMs : nowMs - minuteMs
      requestsMs = requestsMs.filter((atMs) =>
        minuteWindow === 'fixed' ? atMs >= windowStartMs : atMs > windowStartMs && atMs <= nowMs,
      )
      if (requestsMs.length < requestsPerMinute) {
        requestsMs.push(nowMs)
        return { ok: true }
      }
      const freeMs = minuteWindow === 'fixed' ? windowStartMs + minuteMs : (requestsMs[0] ?? nowMs) + minuteMs
      return { ok: false, retryAfterS: waitSeconds(freeMs - nowMs) }
    },
    takeUnits(units, nowMs) {
      rollOver(nowMs)
      if (used + units > unitsPerDay) return { ok: false, retryAfterS: waitSeconds(resetMs - nowMs) }
      used += units
      return { ok: true }
    },
    unitsUsed(nowMs) {
      rollOver(nowMs)
      return used
    },
  }
}

function waitSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
