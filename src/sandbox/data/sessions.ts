import type { Listing } from '../market.ts'
import { drawnAt } from '../random.ts'

/**
 * The daily history of every instrument, from the seed alone: a day has the same figures whenever it is read, so that
 * board, prices, indicators, screener and macro series all follow from one history.
 */
export interface Session {
  /** `YYYY-MM-DD` in Tehran. */
  readonly date: string
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  readonly volume: number
  readonly value: number
  /** Nothing was traded: the close is that of the session before. */
  readonly halted: boolean
}

const dayMs = 86_400_000
const tehranOffsetMs = 3.5 * 3_600_000
const haltShare = 0.015

/** The day in Tehran, counted from 1970-01-01. */
export function dayOf(nowMs: number): number {
  return Math.floor((nowMs + tehranOffsetMs) / dayMs)
}

export function dateOf(day: number): string {
  const date = dates.get(day) ?? new Date(day * dayMs).toISOString().slice(0, 10)
  if (dates.size < datesMax) dates.set(day, date)
  return date
}

const dates = new Map<number, string>()
const datesMax = 5_000

/** From 0 up to, but not, 1: the same for the same seed, instrument, day and use. */
export function chance(seed: number, id: number, day: number, use: number): number {
  return drawnAt(seed * 7_919 + id * 104_729 + day * 31 + use, 2)
}

/** The latest `count` sessions up to today, oldest first. */
export function sessionsOf(instrument: Listing, seed: number, nowMs: number, count: number): Session[] {
  const days: number[] = []
  for (let day = dayOf(nowMs); days.length < count; day -= 1) if (isSession(instrument, day)) days.push(day)
  return days.reverse().map((day) => sessionOf(instrument, seed, day))
}

/** What was made is kept for a while: alerts, pages and screens ask for the same sessions again. */
const made = new Map<string, Map<number, Session>>()
const madeMax = 150_000
let madeCount = 0

function sessionOf(instrument: Listing, seed: number, day: number): Session {
  const name = `${seed} ${instrument.id}`
  const own = made.get(name) ?? new Map<number, Session>()
  const before = own.get(day)
  if (before !== undefined) return before
  if (madeCount >= madeMax) {
    made.clear()
    madeCount = 0
  }
  const session = makeSession(instrument, seed, day)
  made.set(name, own.set(day, session))
  madeCount += 1
  return session
}

function makeSession(instrument: Listing, seed: number, day: number): Session {
  const { id } = instrument
  const date = dateOf(day)
  if (isHalted(instrument, seed, day)) {
    const close = closeOn(instrument, seed, day)
    return { date, open: close, high: close, low: close, close, volume: 0, value: 0, halted: true }
  }
  const close = closeOn(instrument, seed, day)
  const open = rounded(instrument, close * (1 + (chance(seed, id, day, 2) - 0.5) * 0.02))
  const spread = 1 + chance(seed, id, day, 3) * 0.01
  const volume = Math.round(2_000_000 * (0.5 + chance(seed, id, day, 4)) * (1 + (id % 7)))
  return {
    date,
    open,
    close,
    volume,
    high: rounded(instrument, Math.max(open, close) * spread),
    low: rounded(instrument, Math.min(open, close) / spread),
    value: Math.round(volume * close),
    halted: false,
  }
}

/** The close of a day, or of the last session before it. */
export function closeOn(instrument: Listing, seed: number, day: number): number {
  let traded = day
  while (isHalted(instrument, seed, traded) || !isSession(instrument, traded)) traded -= 1
  const { id, price } = instrument
  const wave = (length: number, height: number, use: number) =>
    height * Math.sin(2 * Math.PI * (traded / length + chance(seed, id, 0, use)))
  const noise = 0.03 * (chance(seed, id, traded, 1) - 0.5)
  return rounded(instrument, price * Math.exp(wave(233, 0.18, 5) + wave(37, 0.05, 6) + noise))
}

function isHalted({ id, unit }: Listing, seed: number, day: number): boolean {
  return unit === 'rial' && chance(seed, id, day, 7) < haltShare
}

/** Shares are traded from Saturday to Wednesday, gold and currencies every day. */
function isSession({ unit }: Listing, day: number): boolean {
  const weekday = (((day + 4) % 7) + 7) % 7
  return unit !== 'rial' || (weekday !== 4 && weekday !== 5)
}

function rounded({ unit }: Listing, value: number): number {
  return unit === 'usd' ? Math.round(value * 100) / 100 : Math.round(value)
}
