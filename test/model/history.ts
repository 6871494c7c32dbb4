import * as fc from 'fast-check'

/**
 * Random histories of a feed and of the polls that read it. Before every read the feed may gain rows on top or (where
 * `late` says so) anywhere, and lose rows anywhere; any effect of a poll may fail, or be the last one of its process;
 * a poll has units for one to six pages; two may run at once, one step of either at a time.
 *
 * In a lagging history several servers answer in turn, of which some do not have the newest rows yet; the feed loses none.
 * In an alternating one they are two or three that answer in strict turn, all but one of them pages behind, also once
 * things are calm.
 *
 * In a wide history days pass between polls, rows carry dates that cannot be true, old rows are filled in beneath what
 * counts, the memory forgets as soon as it may, the queues forget their jobs, and the clocks of Redis and of the process
 * are wrong, each by itself.
 */
export interface History {
  readonly startFrom: 'beginning' | 'now' | 'since'
  readonly late: boolean
  readonly before: number
  readonly turns: readonly Turn[]
  readonly wide?: Wide
  /** After an answer of the feed itself, each of these servers answers in turn: it lacks so many of the newest rows. */
  readonly lags?: readonly number[]
}

interface Wide {
  /** What the dates of the first rows are, from the list of `oddDates`; 0: true. */
  readonly datesBefore: number
  readonly backfill: boolean
  /** The newest rows that are never forgotten; null: nothing is, in the time of this history. */
  readonly rowsKept: number | null
}

export interface Turn {
  readonly pagesMax: number
  readonly reads: readonly (readonly FeedOp[])[]
  /** The step of the poll that fails, from 0; -1: none. */
  readonly failAt: number
  /** Whether its effect took place all the same, as with an answer that got lost. */
  readonly failAfter: boolean
  /** The process ends there, and a new one goes on. */
  readonly crash: boolean
  /** Another poller at the same time; the list says whose turn it is. */
  readonly rival: readonly boolean[] | null
  /** Redis loses everything before this turn. */
  readonly flush: boolean
  readonly wide?: WideTurn
}

interface WideTurn {
  /** Hours that pass before the turn. */
  readonly hours: number
  /** The clocks from now on, as they differ from the feed's; null: as they were. */
  readonly clocks: { readonly redisMs: number; readonly processMs: number } | null
  /** The queues forget every job that was done. */
  readonly queuesForget: boolean
  /** Pages of a sweep after the poll. */
  readonly sweep: number
}

export type FeedOp =
  | { readonly kind: 'top'; readonly count: number; readonly jitter: number; readonly odd?: number }
  | { readonly kind: 'delete'; readonly at: number; readonly count: number }
  | { readonly kind: 'trim'; readonly count: number }
  | { readonly kind: 'late'; readonly at: number; readonly age: number; readonly odd?: number }
  | { readonly kind: 'backfill'; readonly count: number }
  | { readonly kind: 'bad' }
  /** The next answer comes from a server that has not seen so many of the last changes. */
  | { readonly kind: 'stale'; readonly behind: number }

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs
export const seenWindowMs = dayMs

/** In the place of a date, by their number; 0 is the true one. */
export const oddDates = [
  null,
  '1405-08-30T09:00:00Z',
  '1970-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T00:00:00Z',
  'some day',
] as const

const odd = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: oddDates.length - 1 }) },
)

const top = { kind: fc.constant('top' as const), count: fc.integer({ min: 1, max: 9 }), jitter: fc.nat(6) }
const late = { kind: fc.constant('late' as const), at: fc.nat(40) }
const lost: fc.WeightedArbitrary<FeedOp>[] = [
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('delete' as const),
      at: fc.nat(40),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('trim' as const), count: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'bad' as const }) },
]

const feedOp: fc.Arbitrary<FeedOp> = fc.oneof(
  { weight: 5, arbitrary: fc.record(top) },
  { weight: 2, arbitrary: fc.record({ ...late, age: fc.nat(300_000) }) },
  ...lost,
)

const laggingOp: fc.Arbitrary<FeedOp> = fc.oneof(
  fc.record(top),
  fc.record({ kind: fc.constant('stale' as const), behind: fc.integer({ min: 1, max: 6 }) }),
)

const wideOp: fc.Arbitrary<FeedOp> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ ...top, odd }) },
  { weight: 2, arbitrary: fc.record({ ...late, age: fc.nat(4 * dayMs), odd }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('backfill' as const), count: fc.integer({ min: 1, max: 9 }) }),
  },
  ...lost,
)

function turnOf(op: fc.Arbitrary<FeedOp>) {
  return {
    pagesMax: fc.integer({ min: 1, max: 6 }),
    reads: fc.array(fc.array(op, { maxLength: 2 }), { maxLength: 4 }),
    failAt: fc.oneof({ weight: 2, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(12) }),
    failAfter: fc.boolean(),
    crash: fc.boolean(),
    rival: fc.oneof(
      { weight: 3, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }) },
    ),
  }
}

const plainTurn: fc.Arbitrary<Turn> = fc.record({
  ...turnOf(feedOp),
  flush: fc.oneof({ weight: 60, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
})

const laggingTurn: fc.Arbitrary<Turn> = fc.record({ ...turnOf(laggingOp), flush: fc.constant(false) })

/** One of the clocks at a time is wrong by weeks: of two that are wrong together nobody knows. */
const clocks = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.constant({ redisMs: 0, processMs: 0 }) },
  {
    weight: 1,
    arbitrary: fc.record({
      redisMs: fc.constantFrom(-60 * dayMs, -20 * hourMs, -hourMs, hourMs, 20 * hourMs, 60 * dayMs),
      processMs: fc.constantFrom(-hourMs, 0, hourMs),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      redisMs: fc.constantFrom(-hourMs, 0, hourMs),
      processMs: fc.constantFrom(-60 * dayMs, -20 * hourMs, 20 * hourMs, 60 * dayMs),
    }),
  },
)

const wideTurn: fc.Arbitrary<Turn> = fc.record({
  ...turnOf(wideOp),
  flush: fc.constant(false),
  wide: fc.record({
    hours: fc.constantFrom(0, 0, 0, 1, 15, 36, 75, 1_000),
    clocks,
    queuesForget: fc.boolean(),
    sweep: fc.constantFrom(0, 0, 1, 2, 20),
  }),
})

const startFrom = fc.constantFrom(
  'beginning' as const,
  'beginning' as const,
  'now' as const,
  'since' as const,
)

export const plainHistories: fc.Arbitrary<History> = fc
  .record({
    startFrom,
    late: fc.boolean(),
    before: fc.nat(40),
    turns: fc.array(plainTurn, { minLength: 1, maxLength: 12 }),
  })
  // After a loss, `now` and `since` take in what the last hour shows: that is tested apart.
  .map((history) =>
    history.startFrom === 'beginning'
      ? history
      : { ...history, turns: history.turns.map((each) => ({ ...each, flush: false })) },
  )

const laggingHistories: fc.Arbitrary<History> = fc.record({
  startFrom,
  late: fc.constant(false),
  before: fc.nat(40),
  turns: fc.array(laggingTurn, { minLength: 1, maxLength: 12 }),
})

// With `now`, rows that only the fresher server shows at the start are told from history by their dates alone.
const alternatingHistories: fc.Arbitrary<History> = fc.record({
  startFrom: fc.constantFrom('beginning' as const, 'since' as const),
  late: fc.constant(false),
  before: fc.nat(60),
  turns: fc.array(fc.record({ ...turnOf(fc.record(top)), flush: fc.constant(false) }), {
    minLength: 1,
    maxLength: 12,
  }),
  lags: fc.array(fc.integer({ min: 1, max: 16 }), { minLength: 1, maxLength: 2 }),
})

export const wideHistories: fc.Arbitrary<History> = fc.record({
  startFrom,
  late: fc.boolean(),
  before: fc.nat(40),
  turns: fc.array(wideTurn, { minLength: 1, maxLength: 12 }),
  wide: fc.record({
    datesBefore: odd,
    backfill: fc.boolean(),
    rowsKept: fc.option(fc.nat(12), { nil: null }),
  }),
})

export const histories: fc.Arbitrary<History> = fc.oneof(
  { weight: 2, arbitrary: plainHistories },
  { weight: 2, arbitrary: wideHistories },
  { weight: 2, arbitrary: laggingHistories },
  { weight: 1, arbitrary: alternatingHistories },
)
