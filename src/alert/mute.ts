import { instantOf, wallTime } from '../lib/zone.ts'
/**
 * Spans of the week in which a route is not to disturb anybody. Pure. A span belongs to the day on which it begins, also
 * where it runs over midnight; a holiday counts like one of the named days.
 */
export interface Mute {
  /** Every day where neither days nor holidays are named. */
  readonly days?: readonly MuteDay[] | undefined
  /** `HH:MM`; a span that ends before it begins runs over midnight. */
  readonly from: string
  readonly to: string
  readonly timeZone: string
  /** `YYYY-MM-DD`, Gregorian. */
  readonly holidays: readonly string[]
}

export type MuteDay = (typeof muteDays)[number]

/** In the order of `Date.getUTCDay`. */
export const muteDays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

/** When the mute that is active at `atMs` ends, over all spans that follow each other; undefined when none is active. */
export function mutedUntil(mutes: readonly Mute[], atMs: number): number | undefined {
  let untilMs: number | undefined
  for (let step = 0; step < stepsMax; step += 1) {
    const from = untilMs ?? atMs
    const ends = mutes.map((mute) => endOf(mute, from)).filter((end) => end !== undefined)
    const end = Math.max(...ends)
    if (ends.length === 0 || end <= from) return untilMs
    untilMs = end
  }
  return untilMs
}

/** How people read a mute. */
export function describeMute({ days, from, to, timeZone, holidays }: Mute): string {
  const on = [
    ...(days ?? []),
    ...(holidays.length === 0
      ? []
      : [`${holidays.length} ${holidays.length === 1 ? 'holiday' : 'holidays'}`]),
  ]
  return `${on.length === 0 ? 'every day' : on.join(', ')} ${from}–${to} ${timeZone}`
}

/** Where every minute of every day is muted, the end is given as about a year ahead. */
const stepsMax = 400
const dayMs = 86_400_000
const minuteMs = 60_000

function endOf(mute: Mute, atMs: number): number | undefined {
  const wallMs = wallTime(atMs, mute.timeZone)
  const today = Math.floor(wallMs / dayMs) * dayMs
  const from = minutesOf(mute.from) * minuteMs
  const to = minutesOf(mute.to) * minuteMs
  const length = to > from ? to - from : to - from + dayMs
  for (const day of [today, today - dayMs]) {
    const startMs = day + from
    if (!isNamed(mute, day) || wallMs < startMs || wallMs >= startMs + length) continue
    return instantOf(startMs + length, mute.timeZone)
  }
  return undefined
}

function isNamed({ days, holidays }: Mute, day: number): boolean {
  const date = new Date(day)
  if (holidays.includes(date.toISOString().slice(0, 10))) return true
  const name = muteDays[date.getUTCDay()]
  if (days === undefined) return holidays.length === 0
  return name !== undefined && days.includes(name)
}

function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return hours * 60 + minutes
}
