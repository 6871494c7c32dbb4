import * as z from 'zod'
import { type Announced, delaySeconds, emptyAnnounced } from './announced/evidence.ts'
import { emptyRecent, memorySeconds, type Recent } from './forecast/outlook.ts'
import { binsPerDay, emptyProfile, type Profile, rowCount } from './forecast/profile.ts'
import {
  emptyPhase,
  gainMax,
  type Phase,
  quartersPerMinute,
  secondsPerFive,
  waitGainMax,
} from './marks/phase.ts'
import { emptyFamily, emptyFewScore, type Family, type FewScore, policyNames } from './pace/family.ts'
import { emptyGuard, type Guard } from './pace/guard.ts'
import type { Decision, PollReport } from './schedule.ts'

/**
 * All that the learned schedule remembers, and its stored form. What is read back decides exactly as what was saved
 * would have. Of the form of earlier versions the profile is kept and the rest begins anew; what cannot be read at all
 * is replaced by what is assumed before anything is learned.
 */
export interface Memory {
  profile: Profile
  /** The wall date (as a wall time) that `counts` belongs to; NaN before the first poll. */
  dateMs: number
  /** The first wall date that the profile knows of; NaN before the first poll. */
  sinceMs: number
  /** Bins of the first date that had passed before the first poll; 0 once that date is over. */
  blindBins: number
  /** Events of the date so far, in thousandths, by bin. */
  counts: Int32Array
  recent: Recent
  family: Family
  guard: Guard
  few: FewScore
  phase: Phase
  announced: Announced
  /** The pattern that polls are locked on; null while they are not. */
  lockedOn: Phase | null
  attempts: Attempts
  hotUntilMs: number
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
    recent: emptyRecent(),
    family: emptyFamily(),
    guard: emptyGuard(),
    few: emptyFewScore(),
    phase: emptyPhase(),
    announced: emptyAnnounced(),
    lockedOn: null,
    attempts: emptyAttempts(),
    hotUntilMs: 0,
    extraPages: { today: 0, average: 0 },
  }
}

export function saveMemory(memory: Memory): unknown {
  const { profile, counts, dateMs, sinceMs, ...rest } = memory
  return structuredClone({
    v: 2,
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
  if (parsed.success) return { ...parsed.data, ...learnedOf(parsed.data) }
  const earlier = earlierSchema.safeParse(saved)
  return earlier.success ? { ...emptyMemory(), ...learnedOf(earlier.data) } : undefined
}

function learnedOf({
  profile,
  counts,
  dateMs,
  sinceMs,
  blindBins,
  phase,
  lockedOn,
}: Omit<z.infer<typeof earlierSchema>, 'v'>) {
  return {
    phase,
    lockedOn,
    blindBins,
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

/** How many failures in a row are tried again soon. */
const retriesMax = 3
const retryAfterMs = 2_000
export const pauseMsMax = 60_000
/** Reports may come a little out of order, and clocks of replicas differ a little. */
const clockSlackMs = 60_000

/** What the last polls ask for before the plan is asked: when the last one was, what failed since, and what it left to read. */
export type Attempts = z.infer<typeof attemptsSchema>

export const attemptsSchema = z.object({
  lastAtMs: z.number().nullable(),
  /** Polls in a row whose first page failed. */
  failures: z.int().nonnegative(),
  /** What the last good poll left to read. What an earlier version stored does not say. */
  pagesLeft: z.enum(['none', 'ready', 'failed']).default('none'),
  /** Good polls in a row that left pages because reading them failed. */
  pageFailures: z.int().nonnegative().default(0),
})

export function emptyAttempts(): Attempts {
  return { lastAtMs: null, failures: 0, pagesLeft: 'none', pageFailures: 0 }
}

export function noteAttempt(
  attempts: Attempts,
  { ok, atMs, pagesLeft }: Pick<PollReport, 'atMs' | 'ok' | 'pagesLeft'>,
): void {
  attempts.failures = ok ? 0 : attempts.failures + 1
  if (ok) attempts.pagesLeft = pagesLeft
  if (ok) attempts.pageFailures = pagesLeft === 'failed' ? attempts.pageFailures + 1 : 0
  const lastAtMs = attempts.lastAtMs ?? atMs
  // An instant far ahead of now is of before the clock was set back: with it, nothing would be due until then.
  attempts.lastAtMs = lastAtMs - atMs > clockSlackMs ? atMs : Math.max(lastAtMs, atMs)
}

/**
 * The next poll. What failed is tried again soon, a few times, and pages that wait are read at once; otherwise the plan decides,
 * also while the feed goes on failing, so that an outage does not use up the day's units.
 */
export function nextAfter(
  { lastAtMs, failures, pagesLeft, pageFailures }: Attempts,
  nowMs: number,
  minIntervalMs: number,
  plan: (lastAtMs: number) => Decision,
): Decision {
  if (lastAtMs === null || lastAtMs - nowMs > clockSlackMs) return { atMs: nowMs, reason: 'first' }
  const retry: Decision = { atMs: lastAtMs + Math.max(retryAfterMs, minIntervalMs), reason: 'retry' }
  if (failures > 0 && failures <= retriesMax) return retry
  if (failures === 0 && pagesLeft === 'ready') return { atMs: lastAtMs + minIntervalMs, reason: 'catch_up' }
  if (failures === 0 && pagesLeft === 'failed' && pageFailures <= retriesMax) return retry
  const planned = plan(lastAtMs)
  return { ...planned, atMs: Math.max(planned.atMs, lastAtMs + pauseAfter(failures)) }
}

/** A feed that still fails after the quick retries is called less and less often. */
export function pauseAfter(failures: number): number {
  if (failures <= retriesMax) return 0
  return Math.min(retryAfterMs * 2 ** Math.min(failures - retriesMax, 10), pauseMsMax)
}

const amount = z.number().nonnegative()
const count = z.int().nonnegative()
const each = <T extends z.ZodType>(item: T, length: number) => z.array(item).length(length)
const ofPolicies = each(z.number(), policyNames.length)
const phase = z.object({
  quarters: each(amount, quartersPerMinute),
  seconds: each(amount, secondsPerFive),
  total: amount,
  secondGain: amount,
  minuteGain: amount,
  // Not stored by earlier versions: what is followed is trusted until rows come late.
  timelyGain: amount.default(gainMax),
  waitGain: amount.default(waitGainMax),
  lostAt: amount.default(0),
  lastSecond: z.number(),
  lateMs: amount,
})

/** What version 1 stored and this one still uses. */
const earlierSchema = z.object({
  v: z.literal(1),
  kind: z.literal('learned'),
  profile: z.object({
    rows: each(each(count, binsPerDay), rowCount),
    days: each(count, rowCount),
    lately: z.array(z.object({ row: count.max(rowCount - 1), counts: each(count, binsPerDay) })),
  }),
  dateMs: z.number().nullable(),
  sinceMs: z.number().nullable(),
  blindBins: count.max(binsPerDay),
  counts: each(count, binsPerDay),
  phase,
  lockedOn: phase.nullable(),
})

const memorySchema = earlierSchema.extend({
  v: z.literal(2),
  recent: z.object({
    atMs: z.number(),
    averages: each(amount, memorySeconds.length),
    credit: z.object({
      profile: each(z.number().positive(), memorySeconds.length + 1),
      mean: each(z.number().positive(), memorySeconds.length + 1),
    }),
    today: z.object({ seen: amount, expected: amount }),
    event: z.object({ startMs: z.number(), counted: amount }),
  }),
  family: z.object({
    weights: each(z.number().positive(), policyNames.length),
    dayStartMs: z.number().nullable(),
    unitsPerDay: amount,
    evenPace: amount,
    unitsLeft: ofPolicies,
    // Not stored by earlier versions.
    followingLeft: z.number().nullable().default(null),
    perDay: amount,
    today: amount,
  }),
  // What an earlier version stored knows of no announcements.
  announced: z
    .object({
      rules: z.array(
        z.object({
          id: z.string(),
          name: z.string(),
          nextMs: z.number(),
          firstMs: z.number(),
          periodMs: amount,
          passed: amount,
          fired: amount,
          rate: amount,
        }),
      ),
      reading: z.object({ atMs: z.number().nullable(), pages: count, useless: count }),
      delays: each(amount, delaySeconds),
      explained: amount,
      other: amount,
      // Not stored by earlier versions.
      lateShare: amount.default(0),
      winnings: amount,
      follows: z.boolean(),
      inUse: z.object({ hour: z.number(), density: each(amount, delaySeconds), otherShare: amount }),
    })
    .default(emptyAnnounced),
  guard: z
    .object({
      won: z.number(),
      dayStartMs: z.number().nullable(),
      seen: amount,
      long: amount,
      heap: amount,
      // Not stored by earlier versions.
      unitsLeft: z.number().nullable().default(null),
      unitsPerDay: amount.default(0),
      slower: z.number().default(0),
      evenShare: amount.default(1),
      evenShareBefore: amount.default(1),
      beganInDebt: z.boolean().default(false),
      ofDays: z.array(amount).default(() => [0]),
    })
    .default(emptyGuard),
  // Earlier versions stored less of it: it is judged anew, from the next alert on where only the number of polls is missing.
  few: z
    .object({ polls: amount.default(0), chosen: amount, even: amount, paced: amount, isChosen: z.boolean() })
    .catch(emptyFewScore),
  attempts: attemptsSchema,
  hotUntilMs: amount,
  extraPages: z.object({ today: amount, average: amount }),
})
