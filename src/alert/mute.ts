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

type MuteDay = (typeof muteDays)[number]

/** In the order of `Date.getUTCDay`. */
export const muteDays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

/** When the mute that is active at `atMs` ends, over all spans that follow each other; undefined when none is active. */
export function mutedUntil(mutes: readonly Mute[], atMs: number): number | undefined {
  const last = lastMuted.get(mutes)
  if (last !== undefined && last.fromMs <= atMs && atMs < last.untilMs) return last.untilMs
  const untilMs = endOfAll(mutes, atMs)
  if (untilMs !== undefined) lastMuted.set(mutes, { fromMs: atMs, untilMs })
  return untilMs
}

/** The span that was found last, by the list of the config: where spans follow each other for ever, an end takes 400 steps. */
const lastMuted = new WeakMap<readonly Mute[], { readonly fromMs: number; readonly untilMs: number }>()

function endOfAll(mutes: readonly Mute[], atMs: number): number | undefined {
  let untilMs: number | undefined
  const zones = new Set(mutes.map(({ timeZone }) => timeZone))
  for (let step = 0; step < stepsMax; step += 1) {
    const from = untilMs ?? atMs
    const walls = new Map([...zones].map((zone) => [zone, wallTime(from, zone)]))
    const ends = mutes.flatMap((mute) => endOf(mute, from, walls.get(mute.timeZone) ?? 0) ?? [])
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
/** No clock is set back by more, but for whole days. */
const clockChangeMs = 3 * 60 * minuteMs

/** When the span ends that holds at `atMs`, where the clock of its zone shows `wallMs`. */
function endOf(mute: Mute, atMs: number, wallMs: number): number | undefined {
  const today = Math.floor(wallMs / dayMs) * dayMs
  const from = minutesOf(mute.from) * minuteMs
  const to = minutesOf(mute.to) * minuteMs
  const length = to > from ? to - from : to - from + dayMs
  for (const day of [today, today - dayMs]) {
    const startMs = day + from
    // A clock that is set back shows a time before the start again.
    if (wallMs < startMs - clockChangeMs || wallMs >= startMs + length) continue
    const endMs = instantOf(startMs + length, mute.timeZone)
    if (instantOf(startMs, mute.timeZone) <= atMs && atMs < endMs && isNamed(mute, day)) return endMs
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
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
}
