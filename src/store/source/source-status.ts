import * as z from 'zod'
import { readJson } from '../../alert/json/json.ts'
import type { RedisClient } from '../connection/redis.ts'
import { sourceKeys } from '../keys.ts'
import { thisProcess } from './lease.ts'

/** The status that the poller of a source writes to Redis, for the status page of every replica and the CLI. */
const pollerStates = [
  'starting',
  'standby',
  'polling',
  'waiting',
  'held',
  'budget_spent',
  'stopped',
  'backpressure',
  'redis_down',
] as const
export type PollerState = (typeof pollerStates)[number]

/** No more than a Date can represent. */
const someInstant = z.number().min(-8.64e15).max(8.64e15)
const instant = someInstant.nullable()

/** Instants are milliseconds since the epoch, by the clock of the process that polls; null means never, or not known. */
export const pollerStatusSchema = z.object({
  v: z.literal(1),
  source: z.string(),
  /** The process that stored it. */
  by: z.string().optional(),
  state: z.enum(pollerStates),
  /** Why, for people. */
  reason: z.string(),
  /** Since when the state is this. */
  sinceMs: someInstant,
  lastPollAtMs: instant,
  lastOkAtMs: instant,
  nextPollAtMs: instant,
  nextReason: z.string().nullable(),
  /** Of the budget day in force, which is the configured one unless the API's answers showed another. */
  unitsUsed: z.number(),
  unitsPerDay: z.number(),
  /** Units of the configured day, by what they were spent for. */
  byPurpose: z.record(z.string(), z.number()).optional(),
  dayStartMs: instant.default(null),
  resetsAtMs: instant,
  /** What the API's refusals showed about the budget, where the config says otherwise; for people. */
  lesson: z.string().nullable().default(null),
  /**
   * What the schedule is based on: how many alerts it learned from, the pattern of the engine's clock, until when it is
   * hot, and what rules announce of their evaluations.
   */
  plan: z
    .object({
      learnedFrom: z.number(),
      firing: z.string(),
      hotUntilMs: someInstant,
      announced: z
        .object({
          follows: z.boolean(),
          ruleCount: z.number(),
          rules: z.array(z.object({ id: z.string(), name: z.string() })).readonly(),
        })
        .nullable()
        .default(null),
    })
    .nullable()
    .default(null),
  /**
   * What the last reading of the account's rules showed: how many it read, how many there are beside these, and those that may not
   * fire, the first of them.
   */
  rules: z
    .object({
      atMs: someInstant,
      count: z.number(),
      unread: z.number().default(0),
      silentCount: z.number(),
      silent: z.array(z.object({ id: z.string(), name: z.string(), text: z.string() })).readonly(),
    })
    .nullable()
    .default(null),
  /** Firing times that are not plausible: an example, for people, and when there last was one. */
  doubt: z.object({ text: z.string(), atMs: someInstant }).nullable().default(null),
  /** More pages are waiting: a catch-up is under way. */
  behind: z.boolean(),
  /** What its pages leave of the units of a day to fresh polls, and of which day and units that was decided. */
  keptForHead: z.object({ day: z.string(), units: z.number() }).optional(),
  lastCompleteWalkAtMs: instant,
  lastError: z.object({ atMs: someInstant, code: z.string(), message: z.string() }).nullable(),
  /** When the first poll failed since one went well; null while they go well. */
  failingSinceMs: instant.default(null),
  /** Absent where an earlier version saved it. */
  savedAtMs: someInstant.optional(),
})
export type PollerStatus = z.infer<typeof pollerStatusSchema>

export interface SourceStatusStore {
  /** undefined when no poller has saved a status within a week, or one that this version cannot read. */
  load(): Promise<PollerStatus | undefined>
  /**
   * The same with instants by the clock of this process, which shows `nowMs`; but for the budget day, which ends by the clock of
   * the other.
   */
  loadBy(nowMs: () => number): Promise<PollerStatus | undefined>
  save(status: PollerStatus): Promise<void>
}

const keptMs = 7 * 24 * 60 * 60 * 1_000

export function createSourceStatus(options: {
  redis: RedisClient
  prefix: string
  source: string
}): SourceStatusStore {
  const { redis } = options
  const { status } = sourceKeys(options.prefix, options.source)
  const load = async () => {
    const [text, ageMs] = (await redis.eval(loadScript, 1, status, keptMs)) as [string | null, number]
    return { known: text === null ? undefined : pollerStatusSchema.safeParse(readJson(text)).data, ageMs }
  }
  return {
    load: async () => (await load()).known,
    async loadBy(now) {
      const { known, ageMs } = await load()
      if (known === undefined || known.savedAtMs === undefined) return known
      const aheadMs = now() - (known.savedAtMs + ageMs)
      return Math.abs(aheadMs) < clockSlackMs ? known : shifted(known, aheadMs)
    },
    async save(value) {
      await redis.set(status, JSON.stringify({ ...value, by: thisProcess }), 'PX', keptMs)
    },
  }
}

/** Clocks that differ by less count as equal: a call takes time, too. */
const clockSlackMs = 2_000

/** KEYS status · ARGV its expiry (ms) · Returns the status, and how long ago it was saved (ms) by Redis' clock. */
const loadScript = `
local text = redis.call('GET', KEYS[1])
return { text, ARGV[1] - redis.call('PTTL', KEYS[1]) }
`

function shifted(status: PollerStatus, byMs: number): PollerStatus {
  const by = <T extends number | null>(ms: T) => (ms === null ? ms : ms + byMs)
  const { lastError, doubt, rules } = status
  return {
    ...status,
    sinceMs: by(status.sinceMs),
    lastPollAtMs: by(status.lastPollAtMs),
    lastOkAtMs: by(status.lastOkAtMs),
    nextPollAtMs: by(status.nextPollAtMs),
    lastCompleteWalkAtMs: by(status.lastCompleteWalkAtMs),
    failingSinceMs: by(status.failingSinceMs),
    lastError: lastError && { ...lastError, atMs: by(lastError.atMs) },
    doubt: doubt && { ...doubt, atMs: by(doubt.atMs) },
    rules: rules && { ...rules, atMs: by(rules.atMs) },
  }
}

/** Before anything was tried. */
export function startingStatus(source: string, unitsPerDay: number, nowMs: number): PollerStatus {
  return {
    v: 1,
    source,
    state: 'starting',
    reason: 'no poll was tried yet',
    sinceMs: nowMs,
    lastPollAtMs: null,
    lastOkAtMs: null,
    nextPollAtMs: null,
    nextReason: null,
    unitsUsed: 0,
    unitsPerDay,
    dayStartMs: null,
    resetsAtMs: null,
    lesson: null,
    plan: null,
    rules: null,
    doubt: null,
    behind: false,
    lastCompleteWalkAtMs: null,
    lastError: null,
    failingSinceMs: null,
  }
}
