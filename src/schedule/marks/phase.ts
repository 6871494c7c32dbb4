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
  /** Winnings of the bet on the second of the minute, and on the minute of five. */
  secondGain: number
  minuteGain: number
  /** The last whole second that was counted: what fires together is one event of the clock. */
  lastSecond: number
  /** How much later than its firing time a row can be read, in milliseconds. */
  lateMs: number
}

export const quartersPerMinute = 240
export const secondsPerFive = 300
/** So many alerts are remembered at most; then each counts half. */
const totalMax = 2_000
/** Chance alone passes e^16 about once in ten million alerts. */
const gainToLock = 16
const gainToStayLocked = 4
const gainMax = 40
/** A row that comes later than this came late for a reason of its own. */
const lateMsMax = 30_000

export function emptyPhase(): Phase {
  const quarters = new Array<number>(quartersPerMinute).fill(0)
  const seconds = new Array<number>(secondsPerFive).fill(0)
  return { quarters, seconds, total: 0, secondGain: 0, minuteGain: 0, lastSecond: -1, lateMs: 0 }
}

/** Counts a firing; `readableFromMs` is the last poll that might have shown it already and did not. */
export function countFiring(phase: Phase, firedAtMs: number, readableFromMs: number): void {
  noteLateness(phase, readableFromMs - firedAtMs)
  const wholeSecond = Math.floor(firedAtMs / 1_000)
  if (wholeSecond === phase.lastSecond) return
  phase.lastSecond = wholeSecond
  const second = wholeSecond % 60
  const minute = Math.floor(wholeSecond / 60) % 5
  const inSecond = sumOf(phase.quarters, second * 4, 4)
  const inMinute = sumOf(phase.seconds, minute * 60, 60)
  phase.secondGain = settle(phase.secondGain, (60 * (inSecond + 0.5)) / (phase.total + 30))
  phase.minuteGain = settle(phase.minuteGain, (5 * (inMinute + 0.5)) / (phase.total + 2.5))
  if (phase.total >= totalMax) halve(phase)
  const quarter = Math.floor(firedAtMs / 250) % quartersPerMinute
  phase.quarters[quarter] = (phase.quarters[quarter] ?? 0) + 1
  phase.seconds[wholeSecond % secondsPerFive] = (phase.seconds[wholeSecond % secondsPerFive] ?? 0) + 1
  phase.total += 1
}

/** Whether the winnings suffice. Polls that are locked on a pattern stay with less than it took to lock them. */
export function isProven(gain: number, isLocked: boolean): boolean {
  return gain >= (isLocked ? gainToStayLocked : gainToLock)
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
}

function settle(gain: number, odds: number): number {
  return Math.min(gainMax, Math.max(0, gain + Math.log(odds)))
}

/** Rises to a lateness that was seen, and falls slowly, so that polls after a mark are not too early for its rows. */
function noteLateness(phase: Phase, latenessMs: number): void {
  if (latenessMs > lateMsMax) return
  if (latenessMs > phase.lateMs) phase.lateMs = latenessMs + 250
  else phase.lateMs = phase.lateMs < 50 ? 0 : phase.lateMs * 0.99
}
