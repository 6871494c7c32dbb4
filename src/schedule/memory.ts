import * as z from 'zod'
import { type Demand, emptyDemand } from './demand.ts'
import { emptyIntensity, type Intensity } from './intensity.ts'
import { emptyPhase, type Phase, quartersPerMinute, secondsPerFive } from './phase.ts'
import { binsPerDay, rowCount } from './prior.ts'
import { emptyProfile, type Profile } from './profile.ts'
import type { Attempts } from './retry.ts'

/**
 * All that the learned schedule remembers, and its stored form. What is read back decides exactly as what was saved
 * would have; what cannot be read is not repaired but replaced by what is believed before anything is learned.
 */
export interface Memory {
  profile: Profile
  /** The wall date (as a wall time) that `counts` belongs to; NaN before the first poll. */
  dateMs: number
  /** The first wall date that the profile knows of; NaN before the first poll. */
  sinceMs: number
  /** Bins of the first date that had passed before the first poll; 0 once that date is over. */
  blindBins: number
  /** Alerts of the date so far, in thousandths, by bin. */
  counts: Int32Array
  intensity: Intensity
  phase: Phase
  /** The pattern that polls are locked on; null while they are not. */
  lockedOn: Phase | null
  attempts: Attempts
  /** The last walk was not finished. */
  behind: boolean
  hotUntilMs: number
  /** Polls a second for a demand of 1: where the last plan's search ended and the next one starts. */
  scale: number
  demand: Demand
  /** Pages beyond the first: today's, and a day's on average. */
  extraPages: { today: number; average: number }
}

export function emptyMemory(): Memory {
  return {
    profile: emptyProfile(),
    dateMs: Number.NaN,
    sinceMs: Number.NaN,
    blindBins: 0,
    counts: new Int32Array(binsPerDay),
    intensity: emptyIntensity(),
    phase: emptyPhase(),
    lockedOn: null,
    attempts: { lastAtMs: null, failures: 0 },
    behind: false,
    hotUntilMs: 0,
    scale: 1,
    demand: emptyDemand(),
    extraPages: { today: 0, average: 0 },
  }
}

export function saveMemory(memory: Memory): unknown {
  const { profile, counts, dateMs, sinceMs, ...rest } = memory
  return structuredClone({
    v: 1,
    kind: 'learned',
    ...rest,
    dateMs: Number.isNaN(dateMs) ? null : dateMs,
    sinceMs: Number.isNaN(sinceMs) ? null : sinceMs,
    counts: Array.from(counts),
    profile: {
      rows: profile.rows.map((row) => Array.from(row)),
      days: profile.days,
      lately: profile.lately.map(({ row, counts }) => ({ row, counts: Array.from(counts) })),
    },
  })
}

/** The memory that `saved` holds, or undefined where it holds none that this version can read. */
export function readMemory(saved: unknown): Memory | undefined {
  const parsed = memorySchema.safeParse(saved)
  if (!parsed.success) return undefined
  const { v: _, kind: __, profile, counts, dateMs, sinceMs, ...rest } = parsed.data
  return {
    ...rest,
    dateMs: dateMs ?? Number.NaN,
    sinceMs: sinceMs ?? Number.NaN,
    counts: Int32Array.from(counts),
    profile: {
      rows: profile.rows.map((row) => Int32Array.from(row)),
      days: profile.days,
      lately: profile.lately.map(({ row, counts }) => ({ row, counts: Int32Array.from(counts) })),
    },
  }
}

const amount = z.number().nonnegative()
const count = z.int().nonnegative()
const tally = z.object({ seen: amount, expected: amount })
const phase = z.object({
  quarters: z.array(amount).length(quartersPerMinute),
  seconds: z.array(amount).length(secondsPerFive),
  total: amount,
  secondGain: amount,
  minuteGain: amount,
  lastSecond: z.number(),
  lateMs: amount,
})

const memorySchema = z.object({
  v: z.literal(1),
  kind: z.literal('learned'),
  profile: z.object({
    rows: z.array(z.array(count).length(binsPerDay)).length(rowCount),
    days: z.array(count).length(rowCount),
    lately: z.array(z.object({ row: count.max(rowCount - 1), counts: z.array(count).length(binsPerDay) })),
  }),
  dateMs: z.number().nullable(),
  sinceMs: z.number().nullable(),
  blindBins: count.max(binsPerDay),
  counts: z.array(count).length(binsPerDay),
  intensity: z.object({
    trust: z.array(z.number().positive()).length(5),
    bursts: z.array(amount).length(3),
    lullOdds: amount,
    atMs: z.number(),
    today: tally,
    recent: tally,
  }),
  phase,
  lockedOn: phase.nullable(),
  attempts: z.object({ lastAtMs: z.number().nullable(), failures: count }),
  behind: z.boolean(),
  hotUntilMs: amount,
  scale: z.number().positive(),
  demand: z.object({
    real: amount,
    planned: amount,
    days: amount,
    lateReal: amount,
    latePlanned: amount,
  }),
  extraPages: z.object({ today: amount, average: amount }),
})
