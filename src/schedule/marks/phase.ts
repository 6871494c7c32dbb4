/**
 * Where alerts fire on the engine's clock: within the minute and within five minutes. Whether that is a pattern is decided
 * by a bet against chance: before each alert is counted, the pattern so far bets on its place; the winnings (a logarithm)
 * reach the limit only where alerts do fire on marks, and are lost within a few alerts when they stop to.
 */
export interface Phase {
  /** Alerts in each quarter second of the minute, old ones fading. */
  readonly quarters: number[]
  /** Alerts in each second of five minutes. */
  readonly seconds: number[]
  /** The sum of either. */
  total: number
  /** What the sum was when marks were lost last, and a little less. */
  lostAt: number
  /** Winnings of the bet on the second of the minute, and on the minute of five. */
  secondGain: number
  minuteGain: number
  /** Winnings of the first bet where each row that came late is a bet that was lost. */
  timelyGain: number
  /** Winnings of the bet that an alert waits less for polls on the marks that are known than for the plan without them. */
  waitGain: number
  /** The last whole second that was counted: what fires together is one event of the clock. */
  lastSecond: number
  /** How much later than its firing time a row can be read, in milliseconds. */
  lateMs: number
}

export const quartersPerMinute = 240
export const secondsPerFive = 300
/** How many alerts are remembered at most; then each counts half. */
const totalMax = 2_000
/** Chance alone passes e^16 about once in ten million alerts. */
const gainToLock = 16
const gainToStayLocked = 4
export const gainMax = 40
/** A row that comes later than this came late for a reason of its own: the second at which it fired does not say when it can be read. */
const lateMsMax = 30_000
/**
 * So marks of one second are followed while about a third of the rows come by them. With late rows left out, the few in time of a market
 * that is dated by the whole hour looked like marks: 0.73 of even in twelve days at 2,000 units, and rising; 0.51 with this.
 */
const lateOdds = 1 / 8
/**
 * Polls go by the firings of weeks, which goes on winning its bet where marks drift, while a tenth of the alerts waits for the next mark: five
 * minutes, 1.7 s later each day, had 1.3 (500 units) and 1.46 of even (2,000) in the second week, 1.1 and 1.0 with this bet on the wait itself.
 * What is staked of it, and its limits: at most 3 / 0.05 = 60 even waits are lost; with 12 in place of 5 1.36 and 1.20.
 * Every alert counts alike, as in the mean that this is for, but those of one poll for no more than a sixth of what lies between the limits, so that no
 * batch decides alone: ten batches of 500 a day on the minute have 0.72 of even (500 units), with n^-0.25 for each of n alerts 0.79.
 */
const waitStake = 0.05
const waitChangeMax = 0.5
export const waitGainMax = 5
const waitGainMin = 2
/** A longer wait counts as this, in even waits, so that no single one loses the whole bet. */
export const evenWaitsMax = 16
/** With a poll in more than twenty minutes a mark is worth less than a fortieth of the wait (tick60 at 10 units: 1.7 of even). */
const markUnitsMin = 72

export function emptyPhase(): Phase {
  const quarters = new Array<number>(quartersPerMinute).fill(0)
  const seconds = new Array<number>(secondsPerFive).fill(0)
  return {
    quarters,
    seconds,
    total: 0,
    lostAt: 0,
    secondGain: 0,
    minuteGain: 0,
    timelyGain: 0,
    waitGain: waitGainMax,
    lastSecond: -1,
    lateMs: 0,
  }
}

/**
 * Counts a firing; `readableFromMs` is the last poll that might have shown it already and did not. `isSameSecond`: the poll that shows it
 * shows another one of its second, so that a batch that comes late is one bet that is lost, as one in time is one that is won.
 */
export function countFiring(
  phase: Phase,
  firedAtMs: number,
  readableFromMs: number,
  isSameSecond = false,
): void {
  const latenessMs = readableFromMs - firedAtMs
  if (latenessMs > lateMsMax) {
    if (!isSameSecond) phase.timelyGain = settle(phase.timelyGain, lateOdds)
    return
  }
  noteLateness(phase, latenessMs)
  const wholeSecond = Math.floor(firedAtMs / 1_000)
  if (wholeSecond === phase.lastSecond) return
  phase.lastSecond = wholeSecond
  const second = wholeSecond % 60
  const minute = Math.floor(wholeSecond / 60) % 5
  const inSecond = sumOf(phase.quarters, second * 4, 4)
  const inMinute = sumOf(phase.seconds, minute * 60, 60)
  const odds = (60 * (inSecond + 0.5)) / (phase.total + 30)
  phase.secondGain = settle(phase.secondGain, odds)
  phase.timelyGain = settle(phase.timelyGain, odds)
  phase.minuteGain = settle(phase.minuteGain, (5 * (inMinute + 0.5)) / (phase.total + 2.5))
  if (phase.total >= totalMax) halve(phase)
  const quarter = Math.floor(firedAtMs / 250) % quartersPerMinute
  phase.quarters[quarter] = (phase.quarters[quarter] ?? 0) + 1
  phase.seconds[wholeSecond % secondsPerFive] = (phase.seconds[wholeSecond % secondsPerFive] ?? 0) + 1
  phase.total += 1
}

/** Counts what polls on marks saved each alert that a poll shows, or would have saved it, in even waits. */
export function judgeMarks(phase: Phase, saved: readonly number[]): void {
  const sum = saved.reduce((before, each) => before + Math.log(1 + waitStake * each), 0)
  const change = Math.max(-waitChangeMax, Math.min(waitChangeMax, sum))
  phase.waitGain = Math.min(waitGainMax, Math.max(0, phase.waitGain + change))
}

/** Whether the winnings suffice. Polls that are locked on a pattern stay with less than it took to lock them. */
export function isProven(gain: number, isLocked: boolean): boolean {
  return gain >= (isLocked ? gainToStayLocked : gainToLock)
}

/** Marks that are lost may have moved: looks at them follow each other as if not much more than this had been known. */
const knownWhenLost = 100

export function noteLoss(phase: Phase): void {
  phase.lostAt = Math.max(0, phase.total - knownWhenLost)
}

/**
 * Half as many firings more since marks were lost than at the last look, or so many that the older half was dropped, or the minutes of
 * five that polls on marks do without; only where there may be a pattern.
 */
export function knowsMore(phase: Phase, lockedOn: Phase | null, lookedAt: number): boolean {
  const { total, lostAt } = phase
  if (!isProven(phase.secondGain, false)) return false
  if (lockedOn && !isProven(lockedOn.minuteGain, true) && isProven(phase.minuteGain, false)) return true
  return total - lostAt >= 1.5 * (lookedAt - lostAt) || total < lookedAt
}

/** Why polls do not go on marks that are known. */
export type MarksLeft = 'few_units' | 'late_rows' | 'nothing_won' | 'nothing_saved'

/**
 * Undefined where polls do go on them. A poll a mark may be slower than even ones, which is only allowed with what was won (alerts dated
 * by the minute: 1.25 of even); those closer together than polls slow none. Where rows come late marks are left, and not forgotten.
 */
export function whyMarksAreLeft(
  { phase, guard }: { readonly phase: Phase; readonly guard: { readonly won: number } },
  isPeriod: boolean,
  unitsPerDay: number,
): MarksLeft | undefined {
  if (unitsPerDay < markUnitsMin) return 'few_units'
  if (isPeriod) return undefined
  if (!isProven(phase.timelyGain, true)) return 'late_rows'
  if (guard.won <= 0) return 'nothing_won'
  return phase.waitGain > waitGainMin ? undefined : 'nothing_saved'
}

export const marksLeftTexts: Readonly<Record<MarksLeft, string>> = {
  few_units: 'polls are too few a day to go by that',
  late_rows: 'most rows come later, so polls do not go by that',
  nothing_saved: 'polls do not go by that, since alerts would have waited longer for them of late',
  nothing_won: 'polls do not go by that while the plan has been no better than evenly spaced ones',
}

/** Shares of the minutes of five, by slots; all the same until the bet on the minute is won. */
export function weighMinutes(phase: Phase, start: number, isLocked: boolean): number[] {
  if (!isProven(phase.minuteGain, isLocked)) return [1, 1, 1, 1, 1]
  const shift = Math.floor(start / 4)
  return [0, 1, 2, 3, 4].map((minute) => {
    let count = 0
    for (let k = 0; k < 60; k++) count += phase.seconds[(minute * 60 + shift + k) % secondsPerFive] ?? 0
    return (count + 0.2) / (phase.total / 5 + 0.2)
  })
}

/** The share of the firings in each quarter second: those counted there and in its second, and a little where nothing fired yet. */
export function quarterDensity(phase: Phase): number[] {
  return phase.quarters.map((count, at) => {
    const second = sumOf(phase.quarters, at - (at % 4), 4)
    const smooth = (second + 0.25) / 4
    return (0.98 * (count + 0.5 * smooth)) / (1.5 * phase.total + 7.5) + 0.02 / quartersPerMinute
  })
}

/** The quarter second with the most firings after it and the fewest before it. */
export function slotStart(density: readonly number[]): number {
  let best = 0
  let bestScore = Number.NEGATIVE_INFINITY
  for (let at = 0; at < quartersPerMinute; at++) {
    let score = 0
    for (let k = 0; k < 40; k++) {
      if (k < 12) score += density[(at + k) % quartersPerMinute] ?? 0
      score -= density[(at - 1 - k + quartersPerMinute) % quartersPerMinute] ?? 0
    }
    if (score > bestScore + 1e-12) {
      best = at
      bestScore = score
    }
  }
  return best
}

export function sumOf(values: readonly number[], from: number, length: number): number {
  let sum = 0
  for (let at = from; at < from + length; at++) sum += values[at] ?? 0
  return sum
}

function halve(phase: Phase): void {
  for (const counts of [phase.quarters, phase.seconds])
    for (let at = 0; at < counts.length; at++) counts[at] = Math.floor((counts[at] ?? 0) * 500) / 1_000
  phase.total = sumOf(phase.quarters, 0, quartersPerMinute)
  phase.lostAt /= 2
}

function settle(gain: number, odds: number): number {
  return Math.min(gainMax, Math.max(0, gain + Math.log(odds)))
}

/** Rises to a lateness that was seen, and falls slowly, so that polls after a mark are not too early for its rows. */
function noteLateness(phase: Phase, latenessMs: number): void {
  if (latenessMs > phase.lateMs) phase.lateMs = latenessMs + 250
  else phase.lateMs = phase.lateMs < 50 ? 0 : phase.lateMs * 0.99
}

/**
 * Marks that come several times a minute, closer together than polls do: no minute is waited for, but each planned poll goes
 * to just after a mark. (Marks of five seconds at 2,000 units: 0.59 of even without.)
 */
export interface MarkPeriod {
  readonly periodMs: number
  /** From a whole number of periods to the instant just after the firings. */
  readonly offsetMs: number
  /** What an alert waits until that instant, in seconds. */
  readonly waitSeconds: number
}

/** In quarter seconds: 5, 10, 15, 20 and 30 s, which divide the minute. */
const periods = [20, 40, 60, 80, 120]
/** The wait that is worth it, as a part of what polls at any instant of the period would leave. */
const waitShareMax = 0.6
/** Marks of the minute that are left out belong to a longer period. */
const markShareMin = 0.7
const quarterMs = 250

/** The shortest period on which firings lie close together; undefined where none is proven. */
export function findMarkPeriod(phase: Phase, isLocked: boolean): MarkPeriod | undefined {
  if (!isProven(phase.secondGain, isLocked)) return undefined
  for (const period of periods) {
    if (!usesEveryMark(phase, period)) continue
    const counts = new Float64Array(period)
    for (let at = 0; at < quartersPerMinute; at++)
      counts[at % period] = (counts[at % period] ?? 0) + (phase.quarters[at] ?? 0)
    let best = { wait: Number.POSITIVE_INFINITY, end: 0 }
    for (let end = 0; end < period; end++) {
      let wait = 0
      for (let back = 0; back < period; back++)
        wait += (counts[(end - back + period) % period] ?? 0) * (back + 0.5)
      if (wait < best.wait) best = { wait, end }
    }
    const waitQuarters = best.wait / Math.max(1e-9, phase.total)
    if (waitQuarters > (waitShareMax * period) / 2) continue
    const periodMs = period * quarterMs
    return { periodMs, offsetMs: ((best.end + 1) * quarterMs) % periodMs, waitSeconds: waitQuarters / 4 }
  }
  return undefined
}

function usesEveryMark({ quarters, total }: Phase, period: number): boolean {
  const marks = quartersPerMinute / period
  return Array.from({ length: marks }, (_, mark) => sumOf(quarters, mark * period, period)).every(
    (count) => count >= (markShareMin * total) / marks,
  )
}

/** The mark near a planned instant, sometimes before and sometimes after it, so that as many polls come as were planned. */
export function onNearMark(
  { periodMs, offsetMs }: MarkPeriod,
  plannedMs: number,
  bounds: { readonly earliestMs: number; readonly latestMs: number; readonly lateMs: number },
): number | undefined {
  const shift = offsetMs + bounds.lateMs
  const periodsPassed = (plannedMs - shift) / periodMs
  const dither = (Math.floor(periodsPassed) * 0.618_033_988_749_894_9) % 1
  const first = Math.ceil((bounds.earliestMs - shift) / periodMs)
  const at = Math.max(first, Math.floor(periodsPassed + dither)) * periodMs + shift
  return at <= bounds.latestMs ? at : undefined
}

/** What an alert at an instant waits on average where polls at such a pace go to near marks, or to none, in seconds. */
export function waitOnPeriod(period: MarkPeriod | undefined, perSecond: number, atMs: number): number {
  const gap = 1 / Math.max(1e-9, perSecond)
  if (period === undefined) return gap / 2
  const { periodMs, offsetMs } = period
  const nextMs = offsetMs + Math.ceil((atMs - offsetMs) / periodMs) * periodMs
  // One of `gap / period` marks is polled.
  return (nextMs - atMs) / 1_000 + Math.max(0, gap - periodMs / 1_000) / 2
}
