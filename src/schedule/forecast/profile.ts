import { dateKey, wallTime } from '../../lib/zone.ts'
import { minutesOf } from '../budget.ts'
import { type ScheduleOptions, weekdays } from '../schedule.ts'
import { blockSums, logEvidence, smoothShape } from './shape.ts'

/**
 * What was learned of days: how many alerts each five minutes of each weekday brought, old days counting for less.
 * Counts are whole thousandths of an alert, so that what a restart reads back is exactly what was known before.
 */
export interface Profile {
  /** rows[row][bin], in thousandths of an alert; a row a weekday and one for holidays. */
  readonly rows: Int32Array[]
  /** How many days each row saw, in thousandths, fading like the counts. */
  readonly days: number[]
  /** The last days as they were, the newest last. */
  readonly lately: RecentDay[]
}

interface RecentDay {
  readonly row: number
  readonly counts: Int32Array
}

/** Days after which one counts half: about three weeks of trading days. */
const halfLifeDays = 21
const fade = 0.5 ** (1 / halfLifeDays)
/** How probable it is, before looking, that two weekdays of one class, or of two classes, have the same shape. */
const kinshipWithin = 0.8
const kinshipAcross = 0.15
/** Days are more unlike than Poisson counts are, so evidence for a difference counts for less than it would of Poisson counts. */
const evidenceShare = 0.15
/** How probable it is that the config's active hours are right. */
const configTrust = 0.8
/** How many of the last days are kept as they were, and what they count for beside the shape of all days. */
const latelyMax = 5
const latelyWeight = 0.5
const binsPerHour = 12

export function emptyProfile(): Profile {
  const rows = Array.from({ length: rowCount }, () => new Int32Array(binsPerDay))
  return { rows, days: new Array(rowCount).fill(0), lately: [] }
}

/**
 * Lets all rows fade by a day, then adds what that day brought. A silent day is one more that its row has seen and fades nothing:
 * the feed may be down.
 */
export function foldDay(profile: Profile, row: number, counts: Int32Array): void {
  const left = counts.every((count) => count === 0) ? 1 : fade
  if (left < 1) profile.lately.push({ row, counts: Int32Array.from(counts) })
  if (profile.lately.length > latelyMax) profile.lately.shift()
  for (let each = 0; each < rowCount; each++) {
    profile.days[each] = Math.round((profile.days[each] ?? 0) * left) + (each === row ? 1_000 : 0)
    const bins = profile.rows[each]
    for (let bin = 0; bins && left < 1 && bin < binsPerDay; bin++)
      bins[bin] = Math.round((bins[bin] ?? 0) * left) + (each === row ? (counts[bin] ?? 0) : 0)
  }
}

/** Adds a day of so long ago that nobody had counted; its alerts follow as late ones. */
export function addPastDay(profile: Profile, row: number, daysAgo: number): void {
  profile.days[row] = (profile.days[row] ?? 0) + Math.round(1_000 * fade ** daysAgo)
}

/** Adds a share of an alert of a day that was folded `daysAgo` days ago. */
export function addLate(profile: Profile, row: number, bin: number, share: number, daysAgo: number): void {
  const bins = profile.rows[row]
  if (bins) bins[bin] = (bins[bin] ?? 0) + Math.round(1_000 * share * fade ** daysAgo)
}

/** Alerts that are still remembered, each with what its age leaves of it. */
export function learnedAlerts(profile: Profile): number {
  let sum = 0
  for (const row of profile.rows) for (let bin = 0; bin < row.length; bin++) sum += row[bin] ?? 0
  return sum / 1_000
}

/**
 * Expected alerts a second in each bin of a day of this row: its own days and those that turned out to be like it, and
 * in the end the last days, which overrule the rest as far as the rest did not predict them.
 */
export function forecastDay(profile: Profile, row: number, options: ScheduleOptions): Float64Array {
  const hours = profile.rows.map(hoursOf)
  const weights = profile.rows.map((_, other) => kinship(hours, row, other, options) / 1_000)
  const counts = new Float64Array(binsPerDay)
  for (const [other, bins] of profile.rows.entries()) addCounts(counts, bins, weights[other] ?? 0)
  const total = counts.reduce((sum, count) => sum + count, 0)
  const days = profile.days.reduce((sum, seen, other) => sum + seen * (weights[other] ?? 0), 0)
  const perSecond = ((total + 10) / (days + 0.5)) * (1_000 / binMs)
  const lately = new Float64Array(binsPerDay)
  for (const day of profile.lately) addCounts(lately, day.counts, latelyWeight * (weights[day.row] ?? 0))
  const { shares } = smoothShape(lately, shapeOf(counts, row, options))
  return shares.map((share) => share * perSecond)
}

function addCounts(into: Float64Array, counts: Int32Array, weight: number): void {
  for (let bin = 0; bin < into.length; bin++) into[bin] = (into[bin] ?? 0) + weight * (counts[bin] ?? 0)
}

/** Either the hours of the config are right, or every hour is alike: the alerts that came decide between the two. */
function shapeOf(counts: Float64Array, row: number, options: ScheduleOptions): Float64Array {
  const smoothed = smoothShape(counts, priorShape(row, options))
  if (!options.activeHours) return smoothed.shares
  const flat = smoothShape(counts, new Float64Array(binsPerDay).fill(1 / binsPerDay))
  const odds =
    ((1 - configTrust) / configTrust) * Math.exp(Math.min(50, flat.logEvidence - smoothed.logEvidence))
  return smoothed.shares.map((share, bin) => (share + odds * (flat.shares[bin] ?? 0)) / (1 + odds))
}

/** How much another row's days tell about this row's: the probability that both are drawn from one shape. */
function kinship(
  hours: readonly Float64Array[],
  row: number,
  other: number,
  options: ScheduleOptions,
): number {
  const [mine, theirs] = [hours[row], hours[other]]
  if (row === other || !mine || !theirs) return 1
  const prior = isTrading(row, options) === isTrading(other, options) ? kinshipWithin : kinshipAcross
  const both = mine.map((count, hour) => count + (theirs[hour] ?? 0))
  const even = new Float64Array(mine.length).fill(1)
  const evidenceOf = (each: Float64Array) => logEvidence(each, even, each.length)[0] ?? 0
  const gain = evidenceOf(both) - evidenceOf(mine) - evidenceOf(theirs)
  return 1 / (1 + ((1 - prior) / prior) * Math.exp(-evidenceShare * gain))
}

/** Alerts of each hour of a row's days. */
function hoursOf(counts: Int32Array): Float64Array {
  const alerts = new Float64Array(counts.length)
  for (let bin = 0; bin < alerts.length; bin++) alerts[bin] = (counts[bin] ?? 0) / 1_000
  return blockSums(alerts, binsPerHour)
}

/** A bin is five minutes of the wall clock. */
export const binsPerDay = 288
export const binMs = 300_000
/** One row a weekday, in the order of `Date.getUTCDay`, and one for holidays. */
export const rowCount = 8
const holidayRow = 7
const dayMs = 86_400_000

/** The zone whose clock the alerts are thought to follow. */
export function profileZone(options: ScheduleOptions): string {
  return options.activeHours?.timeZone ?? options.timeZone
}

/** The row of a wall time's date. */
export function rowOf(wallMs: number, { holidays }: ScheduleOptions): number {
  if (holidays.length > 0 && holidays.includes(dateKey(wallMs))) return holidayRow
  return new Date(wallMs).getUTCDay()
}

export function binOf(wallMs: number): number {
  return Math.floor((wallMs - Math.floor(wallMs / dayMs) * dayMs) / binMs)
}

/** Whether the active hours apply to days of this row; every weekday is alike where there are none. */
function isTrading(row: number, { activeHours }: ScheduleOptions): boolean {
  const name = weekdays[row]
  return name !== undefined && (!activeHours || activeHours.days.includes(name))
}

/** The shares of a day's alerts that each bin is thought to bring: flat, but for active hours that the config names. */
function priorShape(row: number, options: ScheduleOptions): Float64Array {
  const shape = new Float64Array(binsPerDay)
  if (!options.activeHours) return shape.fill(1 / binsPerDay)
  const trading = isTrading(row, options)
  addSpan(shape, 0, 1_440, trading ? 0.1 : 0.2)
  addSpan(shape, 7 * 60, 23.5 * 60, trading ? 0.3 : 0.8)
  if (trading) addSpan(shape, minutesOf(options.activeHours.from), minutesOf(options.activeHours.to), 0.6)
  return shape
}

function addSpan(shape: Float64Array, fromMinute: number, toMinute: number, share: number): void {
  const length = (toMinute - fromMinute + 1_440) % 1_440 || 1_440
  const first = Math.floor(fromMinute / 5)
  const bins = Math.max(1, Math.round(length / 5))
  for (let k = 0; k < bins; k++) {
    const bin = (first + k) % binsPerDay
    shape[bin] = (shape[bin] ?? 0) + share / bins
  }
}

/** Whether an instant is within the active hours of the config, and on no holiday; always where the config names none. */
export function isActiveAt(atMs: number, options: ScheduleOptions): boolean {
  const { activeHours } = options
  if (!activeHours) return true
  const wallMs = wallTime(atMs, profileZone(options))
  const minute = Math.floor(wallMs / 60_000) % 1_440
  const [from, to] = [minutesOf(activeHours.from), minutesOf(activeHours.to)]
  const isWithin = from < to ? minute >= from && minute < to : minute >= from || minute < to
  return isWithin && isTrading(rowOf(wallMs, options), options)
}
