import { createProcessState, runPoll } from '../../src/intake/poll.ts'
import type { PollDeps, PollResult, ProcessState } from '../../src/intake/poll-types.ts'
import { runSweep } from '../../src/intake/sweep.ts'
import type { WalkState } from '../../src/store/walk/walk-state.ts'
import { createMetrics, type Purpose } from '../../src/telemetry/metrics.ts'
import type { FeedPage, FeedRow } from '../../src/walk/page.ts'
import { MemoryFeed, type MemoryRow, memoryRig, rigStartMs } from '../intake/memory-rig.ts'
import { dayMs, type FeedOp, type History, hourMs, oddDates, seenWindowMs, type Turn } from './history.ts'
import { Interleaver } from './interleaver.ts'
import { type Promised, promisedOf, type RowFacts } from './promise.ts'
import { type TwinOptions, TwinState } from './twin.ts'

/** A build that is wrong on purpose; see `broken.ts`. */
export interface Broken {
  readonly state?: (twin: TwinState, world: World) => WalkState
  /** Called with the keys of rows before their jobs are stored. */
  readonly beforeEnqueue?: (twin: TwinState, keys: readonly string[]) => void
  /** How it reads the rows of a page. */
  readonly row?: (row: FeedRow, page: FeedPage, index: number, about: { purpose: Purpose } & World) => FeedRow
  readonly memory?: Partial<TwinOptions>
  /** Of the histories that catch it soon. */
  readonly seed?: number
}

export interface World {
  readonly feed: MemoryFeed
  readonly twin: TwinState
  /** The true time. */
  readonly nowMs: number
  /** The page that was read last. */
  lastRead: { page: number; total: number }
}

export interface Verdict {
  /** In scope, on the feed at the end, and never handed to the queues. */
  readonly lost: readonly string[]
  /** Handed to the queues though out of scope. */
  readonly strange: readonly string[]
  /** Handed to the queues a second time, when their first time was marked and nobody else polled. */
  readonly doubled: readonly string[]
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
/** Rows of the history that `startFrom: since` takes in. */
const sinceRows = 12
const startMs = rigStartMs - sinceRows * secondMs

export async function live(history: History, broken: Broken = {}): Promise<Verdict> {
  const run = new Run(history, broken)
  for (const turn of history.turns) await run.turn(turn)
  return run.settle()
}

class Run {
  readonly #history: History
  readonly #broken: Broken
  readonly #feed = new MemoryFeed(perPage)
  readonly #twin: TwinState
  readonly #world: World
  readonly #rig
  readonly #rows = new Map<string, RowFacts>()
  #clocks = { redisMs: 0, processMs: 0 }
  #trueMs = rigStartMs
  #reads = 0
  /** Of the feed, as the head that was read last had them. */
  #headRows = 0
  #enqueued = new Set<string>()
  /** Rows whose jobs are stored and which are marked. */
  #settled = new Set<string>()
  /** Those that were so before the turn. */
  #before = new Set<string>()
  readonly #doubled: string[] = []
  #processState: ProcessState
  readonly #rival: ProcessState
  #disturbed = false
  #wasBehind = false
  /** A page of the poll was read. */
  #walking = false
  #undatedFirst = false
  /** What the feed does beneath its head while a walk is under way: gain rows, or lose them. */
  #shift: 'gains' | 'loses' | undefined
  /** The first walk was complete before the polls of this turn began. */
  #afterFirst = false
  /** The feed after each change. */
  readonly #past: MemoryRow[][] = []
  /** How many of the last changes the server that answers next has not seen. */
  #behind = 0

  constructor(history: History, broken: Broken) {
    this.#history = history
    this.#broken = broken
    const { before, startFrom, wide } = history
    const forgets = wide?.rowsKept ?? null
    const now = () => this.#trueMs + this.#clocks.redisMs
    this.#twin = new TwinState({
      seenWindowMs: forgets === null ? 10_000 * dayMs : seenWindowMs,
      rowsKept: forgets ?? 0,
      ...broken.memory,
      now,
    })
    const run = this
    this.#world = {
      feed: this.#feed,
      twin: this.#twin,
      get nowMs() {
        return run.#trueMs
      },
      lastRead: { page: 0, total: 0 },
    }
    this.#rig = memoryRig(this.#twin, { feed: this.#feed, metrics })
    this.#processState = createProcessState(this.#rig.deps.clock)
    this.#rival = createProcessState(this.#rig.deps.clock)
    const rows = this.#feed.add(before, (index) => rigStartMs - (before - index) * secondMs)
    const odd = startFrom === 'since' ? 0 : (wide?.datesBefore ?? 0)
    for (const row of rows) this.#note(row, 'before', odd)
  }

  async turn(turn: Turn): Promise<void> {
    this.#passTime(turn)
    this.#afterFirst = this.#twin.wasComplete
    if (turn.flush) {
      this.#disturbed = true
      this.#twin.flush()
      this.#enqueued = new Set()
      this.#settled = new Set()
    }
    this.#before = new Set(turn.rival === null ? this.#settled : [])
    const reads = [...turn.reads]
    const fails = { at: turn.failAt, after: turn.failAfter }
    if (turn.rival === null) {
      await this.#poll(turn.pagesMax, this.#deps(reads, fails))
      await this.#sweep(turn.wide?.sweep ?? 0)
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
    this.#walking = false
    for (const ops of reads) this.#disturb(ops)
    this.#behind = 0
    if (turn.failAt >= 0) this.#disturbed = true
    if (turn.crash) this.#processState = createProcessState(this.#rig.deps.clock)
  }

  /** The feed stands still and nothing fails: what was promised must be there. */
  async settle(): Promise<Verdict> {
    let calmPages = 0
    let finished = false
    for (let polls = 0; polls < calmPollsMax && !finished; polls += 1) {
      this.#before = new Set(this.#settled)
      const result = await this.#poll(1_000, this.#deps([], { at: -1, after: false }))
      calmPages += result.pages
      // What only the fresher of two servers shows is promised once that one has shown its head.
      finished = result.finished && this.#headRows === this.#feed.rows.length
      if (result.finished && !finished) this.#reads = 0
    }
    // A feed of which no row is known, and whose rows look older than what was handled, is taken for a stranger's.
    const { seen } = this.#twin
    const looksForeign = !finished && !this.#feed.rows.some(({ key }) => seen.has(key))
    this.#before = new Set(this.#settled)
    if (this.#history.late || this.#history.wide) await this.#sweep(1_000, 1)
    const shown = this.#feed.rows.map(({ key }) => key).filter((key) => this.#rows.has(key))
    return {
      lost: looksForeign
        ? []
        : shown.filter((key) => this.#promised(key) === 'must be sent' && !this.#enqueued.has(key)),
      strange: [...this.#enqueued].filter((key) => this.#promised(key) === 'must not be sent'),
      doubled: this.#doubled,
      repeats: this.#disturbed ? 0 : this.#rig.queues.repeats,
      unfinished: !finished && !looksForeign,
      calmPages,
    }
  }

  #promised(key: string): Promised {
    const { sinceMs, beginsByDate, forgottenMs, seen } = this.#twin
    const row = this.#rows.get(key)
    if (row === undefined) return 'may be sent'
    const { rows } = this.#feed
    const forgotten = forgottenMs === 0 ? -1 : rows.findIndex((each) => !seen.has(each.key))
    const beneathForgotten = forgotten >= 0 && forgotten < rows.findIndex((each) => each.key === key)
    const end = {
      sinceMs,
      forgottenMs,
      beneathForgotten,
      undatedFirst: this.#undatedFirst,
      beginsByDate,
      wasBehind: this.#wasBehind,
    }
    return promisedOf(row, this.#history, end)
  }

  #passTime({ wide }: Turn): void {
    this.#trueMs += secondMs + (wide?.hours ?? 0) * hourMs
    this.#clocks = wide?.clocks ?? this.#clocks
    if (this.#clocks.processMs < -60_000) this.#wasBehind = true
    this.#rig.nowMs = this.#trueMs + this.#clocks.processMs
    if (wide?.queuesForget) this.#rig.queues.jobs.clear()
  }

  #poll(pagesMax: number, deps: PollDeps, processState = this.#processState): Promise<PollResult> {
    return runPoll(deps, { ...this.#options(processState), pagesMax })
  }

  async #sweep(pagesMax: number, fromPage?: number): Promise<void> {
    if (pagesMax === 0) return
    const deps = this.#deps([], { at: -1, after: false })
    const from = fromPage === undefined ? {} : { fromPage }
    await runSweep(deps, { ...this.#options(this.#processState), pagesMax, ...from })
  }

  #options(processState: ProcessState) {
    const { startFrom } = this.#history
    return {
      source: 'main',
      startFrom: startFrom === 'since' ? { sinceMs: startMs } : startFrom,
      processState,
    }
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
    const { queues } = this.#rig
    return {
      ...this.#rig.deps,
      readPage: async (page, purpose) => {
        this.#disturb(reads.shift() ?? [])
        const answer = this.#read(page, purpose)
        this.#walking = true
        this.#world.lastRead = { page, total: answer.total }
        if (page === 1) this.#headRows = answer.total
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
        commit: (base, change) =>
          step(async () => {
            const committed = await state.commit(base, change)
            if (committed.kind !== 'lost') for (const key of change.mark) this.#settled.add(key)
            return committed
          }),
        sweep: () => state.sweep(),
      },
      inForce: {
        intake: {
          ...this.#rig.deps.inForce.intake,
          queues: {
            enqueue: async (jobs) => {
              const keys = jobs.map(({ alert }) => String(alert.id))
              this.#broken.beforeEnqueue?.(this.#twin, keys)
              await step(async () => {
                for (const key of keys) {
                  if (this.#before.has(key)) this.#doubled.push(key)
                  this.#enqueued.add(key)
                }
                await queues.enqueue(jobs)
              })
            },
          },
        },
      },
    }
  }

  #read(page: number, purpose: Purpose): FeedPage {
    const answer = this.#server().page(page)
    const { row } = this.#broken
    if (row === undefined) return answer
    const about = { ...this.#world, nowMs: this.#trueMs, purpose }
    return { ...answer, rows: answer.rows.map((each, index) => row(each, answer, index, about)) }
  }

  /** Who answers the next read: the feed, or a server that is behind it. */
  #server(): MemoryFeed {
    const behind = this.#behind
    this.#behind = 0
    this.#reads += 1
    const lags = [0, ...(this.#history.lags ?? [])]
    const lag = lags[(this.#reads - 1) % lags.length] ?? 0
    if (behind === 0 && lag === 0) return this.#feed
    const server = new MemoryFeed(perPage)
    server.rows = lag > 0 ? this.#feed.rows.slice(lag) : (this.#past.at(-1 - behind) ?? this.#past[0] ?? [])
    return server
  }

  #disturb(ops: readonly FeedOp[]): void {
    for (const op of ops) {
      this.#apply(op)
      this.#past.push([...this.#feed.rows])
    }
  }

  #apply(op: FeedOp): void {
    const feed = this.#feed
    const { startFrom, late, wide } = this.#history
    if (this.#foolsCounting(op)) return
    const nowMs = this.#trueMs
    if (op.kind === 'top') {
      // Equal dates, and dates in any order.
      const rows = feed.add(op.count, (index) => nowMs - ((index * op.jitter) % 7) * 100)
      for (const row of rows) this.#note(row, 'top', op.odd ?? 0)
    }
    if (op.kind === 'stale') this.#behind = op.behind
    if (op.kind === 'bad') {
      feed.rows.unshift(feed.bad())
      if (!this.#afterFirst) this.#undatedFirst = true
    }
    if (op.kind === 'delete') this.#remove(op.at % (feed.rows.length + 1), op.count)
    if (op.kind === 'trim') this.#remove(Math.max(0, feed.rows.length - op.count), op.count)
    if (op.kind === 'late' && late) {
      // Old dates only where dates do not decide what counts.
      const row = feed.row(startFrom === 'beginning' ? nowMs - op.age : nowMs)
      feed.rows.splice(op.at % (this.#bound() + 1), 0, row)
      this.#note(row, 'late', op.odd ?? 0)
    }
    // Beneath a row that ends a walk: on a feed of which nothing is handled yet, they are news like any other. So they are
    // while `now` reads it for the first time, and knows its history by its count: another poller may have covered a page.
    const isRead = startFrom !== 'now' || this.#twin.wasComplete
    const isBeneath = isRead && feed.rows.some(({ key }) => this.#twin.isCovered(key))
    if (op.kind === 'backfill' && wide?.backfill && isBeneath) {
      const rows = Array.from({ length: op.count }, () => feed.row(rigStartMs - 400 * dayMs))
      feed.rows.push(...rows)
      for (const row of rows) this.#note(row, 'backfill', 0)
    }
  }

  /** Where what `startFrom` leaves out begins: beneath its first row neither a walk nor a sweep looks. */
  #bound(): number {
    const bound = this.#feed.rows.findIndex(({ key }) => {
      const row = this.#rows.get(key)
      return row !== undefined && this.#isOut(row)
    })
    return bound < 0 ? this.#feed.rows.length : bound
  }

  #isOut({ kind, firedMs }: RowFacts): boolean {
    const { startFrom } = this.#history
    if (startFrom === 'beginning') return false
    if (kind === 'backfill' || (kind === 'before' && startFrom === 'now')) return true
    return firedMs !== null && firedMs < (startFrom === 'since' ? startMs : this.#twin.sinceMs)
  }

  /**
   * In a wide history the topmost row that ends a walk stays: where all of them go at once, and dates or counts cannot
   * be relied on either, nothing tells what is new.
   */
  #remove(at: number, count: number): void {
    const { rows } = this.#feed
    const anchor = this.#history.wide ? this.#anchor() : undefined
    const gone = new Set(rows.slice(at, at + count).filter((row) => row !== anchor))
    this.#feed.rows = rows.filter((row) => !gone.has(row))
  }

  /**
   * As many rows that are filled in beneath the frontier of an open stretch as go above it make a walk pass rows by. A
   * sweep finds them, where it can tell them from rows that were forgotten or never counted. Elsewhere rows come or go
   * while a walk is under way, and not both. The end of the feed may go all the while, as far as no walk has come.
   */
  #foolsCounting(op: FeedOp): boolean {
    const { startFrom, wide } = this.#history
    const gains = op.kind === 'late' || op.kind === 'backfill'
    const loses = op.kind === 'delete' || (op.kind === 'trim' && this.#reachesStretch(op.count))
    if (!gains && !loses) return false
    if (wide === undefined || (startFrom === 'beginning' && wide.rowsKept === null)) return false
    if (!this.#walking && !this.#twin.isOpen) this.#shift = undefined
    else this.#shift ??= loses ? 'loses' : 'gains'
    return this.#shift === (loses ? 'gains' : 'loses')
  }

  /** One of the last rows belongs to what a walk has read and not yet finished. */
  #reachesStretch(count: number): boolean {
    return this.#feed.rows.slice(-count).some(({ key }) => (this.#twin.uncovered.get(key) ?? 0) > 0)
  }

  /** The topmost row that ends a walk, or will: of a poll that is under way, one that its first page may have shown. */
  #anchor(): MemoryRow | undefined {
    const { rows } = this.#feed
    return (
      rows.find(({ key }) => this.#twin.isCovered(key)) ??
      rows.find(({ key }) => this.#twin.seen.has(key)) ??
      (this.#walking ? rows[0] : undefined)
    )
  }

  #note(row: MemoryRow, kind: RowFacts['kind'], odd: number): void {
    const date = oddDates[odd]
    if (date) Object.assign(row, { firedAt: date })
    const firedMs = date || row.firedAt === null ? null : Date.parse(row.firedAt)
    if (firedMs === null && kind !== 'before' && !this.#afterFirst) this.#undatedFirst = true
    this.#rows.set(row.key, { kind, firedMs, afterFirst: this.#afterFirst })
  }
}
