import type {
  Committed,
  OpenedWalk,
  RowLookup,
  SweepPosition,
  WalkChange,
  WalkFacts,
  WalkState,
} from '../../src/store/walk/walk-state.ts'
import type { Scope } from '../../src/walk/scope.ts'
import type { Stretch } from '../../src/walk/stretch.ts'
import type { Mark } from '../../src/walk/walk.ts'

export interface TwinOptions {
  readonly seenWindowMs: number
  readonly rowsKept: number
  /** Rules that were tried and are wrong; see `broken.ts`. */
  readonly wrong?: 'forgets under an open walk' | 'goes by one clock'
  /** The clock of Redis. */
  readonly now: () => number
}

const dayMs = 86_400_000

/**
 * The memory of a walk without Redis, for the speed of the model: thousands of histories. `twin.test.ts` holds it to
 * what the real one does, with a clock of its own in the place of Redis'.
 */
export class TwinState implements WalkState {
  readonly source = 'main'
  /** Key → the day on which it was last shown. */
  readonly seen = new Map<string, number>()
  readonly uncovered = new Map<string, number>()
  version = 0
  #id = ''
  #stretches: readonly Stretch[] = []
  #runs = 0
  #facts: WalkFacts = emptyFacts({ kind: 'all' })
  #marked = 0
  #forgotten = 0
  #forgottenDay = -1
  #completeAt: number | undefined
  /** What counts begins after a date of the first page, since the clock of the process was behind it. */
  beginsByDate = false
  readonly #options: TwinOptions
  #sweep: SweepPosition = { page: 0, perPage: 0, total: 0, depth: 0, atMs: null, roundAtMs: null }
  readonly #quarantined = new Set<string>()

  constructor(options: TwinOptions) {
    this.#options = options
  }

  async open({ id, scope, replaces }: { id: string; scope: Scope; replaces?: string }): Promise<OpenedWalk> {
    const created = this.#id === '' || this.#id === replaces
    if (created) {
      this.#id = id
      this.version = 0
      this.#stretches = []
      this.#runs = Math.max(0, ...this.uncovered.values())
      this.#facts = emptyFacts(scope)
      this.#marked = 0
      this.#forgotten = 0
      this.#forgottenDay = -1
      this.#completeAt = undefined
    }
    const seenVanished = this.#marked - this.#forgotten > 0 && this.seen.size === 0
    return { ...this.#remembered(), created, seenVanished }
  }

  async look(keys: readonly string[]): Promise<RowLookup> {
    const marks = keys.map((key): Mark => {
      if (!this.seen.has(key)) return 'new'
      return this.uncovered.get(key) ?? 'covered'
    })
    return {
      ...this.#remembered(),
      marks,
      quarantined: keys.map((key) => this.#quarantined.has(key)),
      server: '',
    }
  }

  async commit(base: { id: string; version: number }, change: WalkChange): Promise<Committed> {
    if (base.id !== this.#id) return { kind: 'lost', added: 0, version: 0, fellOut: 0 }
    const raced = base.version !== this.version
    const become = raced && typeof change.rowsBecome === 'number' ? 0 : change.rowsBecome
    const fresh = change.mark.filter((key) => !this.seen.has(key))
    for (const key of change.mark) this.#become(key, become, fresh.includes(key))
    for (const key of change.shown) this.#become(key, become, false)
    const now = this.#options.now()
    const isOne = this.#options.wrong === 'goes by one clock'
    const late = isOne ? now : Math.max(now, change.nowMs)
    const today = Math.max(dayOf(late), this.#forgottenDay + 1)
    for (const key of fresh) this.seen.set(key, today)
    for (const key of change.shown) {
      const before = this.seen.get(key)
      if (before !== undefined && before < today) this.seen.set(key, today)
    }
    this.#count(change, fresh)
    const completeAt = this.#completeAt
    const early = isOne ? now : Math.min(now, change.nowMs)
    if (!raced) this.#walkOn(change, early)
    this.#forget(early, completeAt)
    return { kind: raced ? 'raced' : 'done', added: fresh.length, version: this.version, fellOut: 0 }
  }

  async sweep(): Promise<SweepPosition> {
    return this.#sweep
  }

  /** Handled in the eyes of whoever does not commit: what a broken build does. */
  mark(key: string): void {
    this.seen.set(key, dayOf(this.#options.now()))
    this.uncovered.set(key, 0)
  }

  get sinceMs(): number {
    const { scope } = this.#facts
    return scope.kind === 'all' ? 0 : scope.sinceMs
  }

  get forgottenMs(): number {
    return this.#facts.forgottenMs
  }

  /** How many rows were history when the source began; null where nobody counted. */
  get historyRows(): number | null {
    const { scope } = this.#facts
    return scope.kind === 'from' ? scope.history : null
  }

  get wasComplete(): boolean {
    return this.#facts.lastCompleteMs !== null
  }

  /** A stretch is. */
  get isOpen(): boolean {
    return this.#stretches.length > 0
  }

  isCovered(key: string): boolean {
    return this.seen.has(key) && !this.uncovered.has(key)
  }

  /** What FLUSHALL does. */
  flush(): void {
    this.seen.clear()
    this.uncovered.clear()
    this.#id = ''
    this.#quarantined.clear()
    this.#sweep = { page: 0, perPage: 0, total: 0, depth: 0, atMs: null, roundAtMs: null }
  }

  #become(key: string, become: 'covered' | number, isNew: boolean): void {
    if (become === 'covered') this.uncovered.delete(key)
    else if (isNew || (become > 0 && this.uncovered.has(key))) this.uncovered.set(key, become)
  }

  #count(change: WalkChange, fresh: readonly string[]): void {
    const facts = this.#facts
    for (const { key } of change.quarantine) if (fresh.includes(key)) this.#quarantined.add(key)
    for (const key of change.readable) this.#quarantined.delete(key)
    this.#marked += fresh.length
    const wasMs = this.sinceMs
    this.#facts = {
      ...facts,
      scope: change.scope ?? facts.scope,
      expected: change.explains && facts.expected !== null ? facts.expected + fresh.length : facts.expected,
      passedOver: facts.passedOver + change.passedOver,
      unrouted: facts.unrouted + change.unrouted,
    }
    if (this.sinceMs > wasMs) this.beginsByDate = true
    if (change.sweep) this.#sweep = change.sweep
  }

  #walkOn({ joins, finished, stretches, complete }: WalkChange, early: number): void {
    for (const [key, run] of this.uncovered) {
      const join = joins.find(({ from }) => from === run)
      if (join) this.uncovered.set(key, join.to)
    }
    for (const [key, run] of this.uncovered) if (finished.includes(run)) this.uncovered.delete(key)
    if (stretches) {
      this.#stretches = stretches
      this.#runs = Math.max(this.#runs, ...stretches.map(({ run }) => run))
    }
    if (stretches || complete) this.version += 1
    if (!complete) return
    const { atMs: lastCompleteMs, total } = complete
    this.#completeAt = early
    this.#facts = { ...this.#facts, lastCompleteMs, total, expected: total }
  }

  #forget(early: number, completeAt: number | undefined): void {
    const { seenWindowMs, rowsKept, wrong } = this.#options
    const isDone = wrong === 'forgets under an open walk' || this.#stretches.length === 0
    if (completeAt === undefined || !isDone) return
    const since = wrong === 'forgets under an open walk' ? early : Math.min(early, completeAt)
    const old = new Set([...this.seen.values()].filter((day) => (day + 1) * dayMs <= since - seenWindowMs))
    for (const day of [...old].sort((one, other) => one - other)) {
      const rows = [...this.seen].flatMap(([key, its]) => (its === day ? [key] : []))
      if (this.seen.size - rows.length < rowsKept) return
      for (const key of rows) {
        this.seen.delete(key)
        this.uncovered.delete(key)
      }
      this.#forgotten += rows.length
      this.#forgottenDay = Math.max(this.#forgottenDay, day)
      const forgottenMs = Math.max(this.#facts.forgottenMs, (this.#forgottenDay + 1) * dayMs)
      this.#facts = { ...this.#facts, forgottenMs }
    }
  }

  #remembered() {
    const { version } = this
    const known = { stretches: this.#stretches, runs: this.#runs, marked: this.#marked }
    return { id: this.#id, replacedIds: [], version, ...known, facts: this.#facts }
  }
}

function dayOf(ms: number): number {
  return Math.floor(ms / dayMs)
}

function emptyFacts(scope: Scope): WalkFacts {
  const none = { lastCompleteMs: null, total: null, expected: null }
  return { scope, ...none, forgottenMs: 0, createdMs: 0, passedOver: 0, unrouted: 0 }
}
