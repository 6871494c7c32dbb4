import * as fc from 'fast-check'
import {
  createPollMemory,
  type PollDeps,
  type PollMemory,
  type PollResult,
  runPoll,
} from '../../src/intake/poll.ts'
import { runSweep } from '../../src/intake/sweep.ts'
import type { WalkState } from '../../src/store/walk-state.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { BenchFeed, type BenchRow, benchStartMs, createBench } from '../intake/bench.ts'
import { TwinState } from './twin.ts'

/**
 * Random histories of a feed and of the polls that read it. Before every read the feed may gain rows on top or (where
 * `late` says so) anywhere, and lose rows anywhere; any effect of a poll may fail, or be the last one of its process;
 * a poll has units for one to six pages; two may run at once, one step of either at a time.
 */
export interface History {
  readonly startFrom: 'beginning' | 'now' | 'since'
  readonly late: boolean
  readonly before: number
  readonly turns: readonly Turn[]
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
}

export type FeedOp =
  | { readonly kind: 'top'; readonly count: number; readonly jitter: number }
  | { readonly kind: 'delete'; readonly at: number; readonly count: number }
  | { readonly kind: 'trim'; readonly count: number }
  | { readonly kind: 'late'; readonly at: number; readonly age: number }
  | { readonly kind: 'bad' }

/** A build that is wrong on purpose; see `broken.ts`. */
export interface Broken {
  readonly state?: (twin: TwinState, world: World) => WalkState
  /** Called with the keys of rows before their jobs are stored. */
  readonly beforeEnqueue?: (twin: TwinState, keys: readonly string[]) => void
}

export interface World {
  readonly feed: BenchFeed
  /** The page that was read last. */
  lastRead: { page: number; total: number }
}

export interface Verdict {
  /** In scope, on the feed at the end, and never handed to the queues. */
  readonly lost: readonly string[]
  /** Handed to the queues though out of scope. */
  readonly strange: readonly string[]
  /** Enqueued twice where nothing failed and nobody raced. */
  readonly repeats: number
  /** Calm polls that did not end the walk. */
  readonly unfinished: boolean
  readonly calmPages: number
}

const metrics = createMetrics({ version: 'test', node: 'test' })
const perPage = 5
const calmPollsMax = 10
const secondMs = 1_000

export async function live(history: History, broken: Broken = {}): Promise<Verdict> {
  const run = new Run(history, broken)
  for (const turn of history.turns) await run.turn(turn)
  return run.settle()
}

class Run {
  readonly #history: History
  readonly #broken: Broken
  readonly #twin = new TwinState({ seenWindowMs: 30 * 86_400_000, rowsKept: 0, now: () => this.#bench.nowMs })
  readonly #feed = new BenchFeed(perPage)
  readonly #world: World
  readonly #bench
  readonly #inScope = new Map<string, BenchRow>()
  #enqueued = new Set<string>()
  #memory: PollMemory
  readonly #rival: PollMemory
  #disturbed = false

  constructor(history: History, broken: Broken) {
    this.#history = history
    this.#broken = broken
    this.#world = { feed: this.#feed, lastRead: { page: 0, total: 0 } }
    this.#bench = createBench(this.#twin, { feed: this.#feed, metrics })
    this.#memory = createPollMemory(this.#bench.deps.clock)
    this.#rival = createPollMemory(this.#bench.deps.clock)
    const { before, startFrom } = history
    const rows = this.#feed.add(before, (index) => benchStartMs - (before - index) * secondMs)
    const counting = startFrom === 'beginning' ? rows : startFrom === 'since' ? rows.slice(-sinceRows) : []
    for (const row of counting) this.#inScope.set(row.key, row)
  }

  async turn(turn: Turn): Promise<void> {
    this.#bench.nowMs += 1_000
    if (turn.flush) {
      this.#disturbed = true
      this.#twin.flush()
      this.#enqueued = new Set()
    }
    const reads = [...turn.reads]
    const fails = { at: turn.failAt, after: turn.failAfter }
    if (turn.rival === null) {
      await this.#poll(turn.pagesMax, this.#deps(reads, fails))
    } else {
      this.#disturbed = true
      const steps = new Interleaver(turn.rival)
      const one = this.#deps(reads, fails, () => steps.wait(0))
      const other = this.#deps(reads, { at: -1, after: false }, () => steps.wait(1))
      await Promise.all([
        this.#poll(turn.pagesMax, one).finally(() => steps.leave(0)),
        this.#poll(turn.pagesMax, other, this.#rival).finally(() => steps.leave(1)),
      ])
    }
    for (const ops of reads) this.#disturb(ops)
    if (turn.failAt >= 0) this.#disturbed = true
    if (turn.crash) this.#memory = createPollMemory(this.#bench.deps.clock)
  }

  /** The feed stands still and nothing fails: what was promised must be there. */
  async settle(): Promise<Verdict> {
    let calmPages = 0
    let finished = false
    for (let polls = 0; polls < calmPollsMax && !finished; polls += 1) {
      const result = await this.#poll(1_000, this.#deps([], { at: -1, after: false }))
      calmPages += result.pages
      finished = result.finished
    }
    if (this.#history.late) {
      const deps = this.#deps([], { at: -1, after: false })
      await runSweep(deps, { ...this.#options(this.#memory), pagesMax: 1_000, fromPage: 1 })
    }
    // `now` begins when its memory is first stored; an older date may count, but is not promised to.
    const sinceMs = this.#history.startFrom === 'now' ? this.#twin.sinceMs + jitterMsMax : 0
    const shown = this.#feed.rows.filter(({ firedAt }) => firedAt !== null && Date.parse(firedAt) >= sinceMs)
    return {
      lost: shown
        .filter(({ key }) => this.#inScope.has(key) && !this.#enqueued.has(key))
        .map(({ key }) => key),
      strange: [...this.#enqueued].filter((key) => !this.#inScope.has(key)),
      repeats: this.#disturbed ? 0 : this.#bench.queues.repeats,
      unfinished: !finished,
      calmPages,
    }
  }

  #poll(pagesMax: number, deps: PollDeps, memory = this.#memory): Promise<PollResult> {
    return runPoll(deps, { ...this.#options(memory), pagesMax })
  }

  #options(memory: PollMemory) {
    const { startFrom } = this.#history
    const from = startFrom === 'since' ? { sinceMs: benchStartMs - sinceRows * secondMs } : startFrom
    return { source: 'main', startFrom: from, memory }
  }

  #deps(
    reads: (readonly FeedOp[])[],
    fails: { at: number; after: boolean },
    wait: () => Promise<void> = async () => {},
  ): PollDeps {
    let steps = 0
    const step = async <T>(effect: () => Promise<T>): Promise<T> => {
      await wait()
      const fail = steps++ === fails.at
      if (fail && !fails.after) throw new Error('failed before')
      const answer = await effect()
      if (fail) throw new Error('failed after')
      return answer
    }
    const state = this.#broken.state?.(this.#twin, this.#world) ?? this.#twin
    const { queues } = this.#bench
    return {
      ...this.#bench.deps,
      readPage: async (page) => {
        this.#disturb(reads.shift() ?? [])
        const answer = this.#feed.page(page)
        this.#world.lastRead = { page, total: answer.total }
        try {
          return await step(async () => ({ kind: 'page', page: answer }))
        } catch (error) {
          return { kind: 'failed', error }
        }
      },
      state: {
        source: 'main',
        open: (beginning) => step(() => state.open(beginning)),
        look: (keys) => step(() => state.look(keys)),
        commit: (base, change) => step(() => state.commit(base, change)),
        sweep: () => state.sweep(),
      },
      intake: {
        ...this.#bench.deps.intake,
        queues: {
          enqueue: async (jobs) => {
            const keys = jobs.map(({ alert }) => String(alert.id))
            this.#broken.beforeEnqueue?.(this.#twin, keys)
            await step(async () => {
              for (const key of keys) this.#enqueued.add(key)
              await queues.enqueue(jobs)
            })
          },
        },
      },
    }
  }

  #disturb(ops: readonly FeedOp[]): void {
    for (const op of ops) this.#apply(op)
  }

  #apply(op: FeedOp): void {
    const feed = this.#feed
    const { nowMs } = this.#bench
    if (op.kind === 'top') {
      // Equal dates, and dates in any order.
      const rows = feed.add(op.count, (index) => nowMs - ((index * op.jitter) % 7) * 100)
      for (const row of rows) this.#inScope.set(row.key, row)
    }
    if (op.kind === 'bad') feed.rows.unshift(feed.bad())
    if (op.kind === 'delete') feed.rows.splice(op.at % (feed.rows.length + 1), op.count)
    if (op.kind === 'trim') feed.rows.splice(Math.max(0, feed.rows.length - op.count))
    if (op.kind === 'late') {
      if (!this.#history.late) return
      // Beneath the first row of what `startFrom` leaves out, neither a walk nor a sweep looks.
      const { sinceMs } = this.#twin
      const bound = feed.rows.findIndex(
        ({ key, firedAt }) => firedAt !== null && (!this.#inScope.has(key) || Date.parse(firedAt) < sinceMs),
      )
      // Old dates only where dates do not decide what counts.
      const row = feed.row(this.#history.startFrom === 'beginning' ? nowMs - op.age : nowMs)
      feed.rows.splice(op.at % ((bound < 0 ? feed.rows.length : bound) + 1), 0, row)
      this.#inScope.set(row.key, row)
    }
  }
}

/** How far the dates of rows that came together may be out of order. */
const jitterMsMax = 600
/** Rows of the history that `startFrom: since` takes in. */
const sinceRows = 12

/** Lets one of two pollers take its next step at a time. */
class Interleaver {
  readonly #order: readonly boolean[]
  readonly #waiting: ((() => void) | undefined)[] = [undefined, undefined]
  readonly #left = [false, false]
  #turns = 0

  constructor(order: readonly boolean[]) {
    this.#order = order
  }

  wait(who: 0 | 1): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting[who] = resolve
      this.#next()
    })
  }

  leave(who: 0 | 1): void {
    this.#left[who] = true
    this.#next()
  }

  #next(): void {
    const ready = [0, 1].filter((who) => this.#waiting[who])
    if (ready.length === 0 || [0, 1].some((who) => !this.#left[who] && !this.#waiting[who])) return
    const wanted = this.#order[this.#turns++ % Math.max(1, this.#order.length)] ? 1 : 0
    const who = ready.includes(wanted) ? wanted : (ready[0] ?? 0)
    const resolve = this.#waiting[who]
    this.#waiting[who] = undefined
    resolve?.()
  }
}

const feedOp: fc.Arbitrary<FeedOp> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('top' as const),
      count: fc.integer({ min: 1, max: 9 }),
      jitter: fc.nat(6),
    }),
  },
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
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('late' as const), at: fc.nat(40), age: fc.nat(300_000) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'bad' as const }) },
)

const turn: fc.Arbitrary<Turn> = fc.record({
  pagesMax: fc.integer({ min: 1, max: 6 }),
  reads: fc.array(fc.array(feedOp, { maxLength: 2 }), { maxLength: 4 }),
  failAt: fc.oneof({ weight: 2, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(12) }),
  failAfter: fc.boolean(),
  crash: fc.boolean(),
  rival: fc.oneof(
    { weight: 3, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }) },
  ),
  flush: fc.oneof({ weight: 60, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
})

export const histories: fc.Arbitrary<History> = fc
  .record({
    startFrom: fc.constantFrom('beginning' as const, 'beginning' as const, 'now' as const, 'since' as const),
    late: fc.boolean(),
    before: fc.nat(40),
    turns: fc.array(turn, { minLength: 1, maxLength: 12 }),
  })
  // After a loss, `now` and `since` take in what the last hour shows: that is tested apart.
  .map((history) =>
    history.startFrom === 'beginning'
      ? history
      : { ...history, turns: history.turns.map((each) => ({ ...each, flush: false })) },
  )
