import type { Scope, ScopeFacts } from '../../walk/scope.ts'
import type { Stretch } from '../../walk/stretch.ts'
import type { Mark } from '../../walk/walk.ts'
import type { RedisClient } from '../connection/redis.ts'
import { sourceKeys, unitsKeptMs } from '../keys.ts'
import { halfHourField, halfHourMs } from '../ledger/half-hours.ts'
import { LeaseLost } from '../source/lease.ts'
import { type Quarantined, type QuarantineLimits, quarantineLimits } from './quarantine.ts'
import { commitAnswer, lookAnswer, openAnswer, scopeSchema, stretchesSchema } from './walk-answers.ts'
import { commitArgs, commitScript, lookScript, openScript } from './walk-scripts.ts'

/**
 * What is known of a source's feed, in Redis: the state of the walk. Its keys, as `keys.ts` names them:
 *
 * - `seen` (HASH, row → the day it was last shown): rows that were handled: enqueued, held back, quarantined or passed over.
 *   Kept for `seenWindowMs` after they were last shown, at the least. Lost: the rows are enqueued again; one whose job
 *   record is still kept is not sent again. Rows of a day up to `forgottenDay` of `meta` count as not there.
 * - `seenDays` (HASH, day → how many rows of `seen` were last shown on it): by it whole days are forgotten.
 * - `uncovered` (ZSET, row → number of its stretch): seen rows below which something may be unknown. Trimmed together
 *   with `seen`. Lost alone: an open stretch is still continued at its place; only the sweep finds the rows that it would
 *   have shown.
 * - `stretch` (STRING): the open stretches, at most a few. Lost: their rows are walked again.
 * - `quarantined`, `quarantinedTimes`: rows that could not be read; see `quarantine.ts`. They are seen like the others, and
 *   looked at again whenever the feed shows them.
 * - `meta` (HASH): id of the stored walk, scope, last complete walk, counts. Lost: a running process finds no id, and
 *   treats that as a loss of everything.
 * - `sweep` (HASH): the position of the sweep. Lost: it begins at the top.
 *
 * Invariants: every change is one script, so that a crash leaves all of it or none; a row is dated by the later of the
 * clocks of Redis and of the process, and removed by the earlier one; a change that was decided on stretches which another
 * poller has changed since marks its rows as handled and changes no stretch; a change for a stored walk that no longer
 * exists changes nothing. All keys share one hash tag with the queues: a Redis that loses its last writes loses marks and
 * jobs together, and a change is only made at the server (and in the run of it) that was looked at before the jobs were stored.
 */
export interface WalkState {
  readonly source: string
  /**
   * Returns the stored walk; creates it with `scope` when there is none or when `replaces` is its id. Throws a LeaseLost where there is
   * none and another Redis answers than `server`.
   */
  open(beginning: { id: string; scope: Scope; replaces?: string; server?: string }): Promise<OpenedWalk>
  /** Returns what is stored of these rows, with the stretches of the same moment. */
  look(keys: readonly string[]): Promise<RowLookup>
  /**
   * `lost`: the stored walk `base.id` no longer exists, `replaced`: another is in its place, or another Redis answers than `base.server`,
   * that of the look before the jobs were stored; nothing was changed.
   */
  commit(base: { id: string; version: number; server?: string }, change: WalkChange): Promise<Committed>
  sweep(): Promise<SweepPosition>
}

export interface WalkFacts extends ScopeFacts {
  /** `total`, and the new rows that walks have found since; late rows do not count. */
  readonly expected: number | null
  readonly createdMs: number
  readonly passedOver: number
  readonly unrouted: number
}

interface StoredWalk {
  readonly id: string
  /** The stored walks that an operator replaced with this one, the newest first. */
  readonly replacedIds: readonly string[]
  readonly version: number
  readonly stretches: readonly Stretch[]
  readonly runs: number
  /** How many rows were ever marked. */
  readonly marked: number
  readonly facts: WalkFacts
}

export interface OpenedWalk extends StoredWalk {
  readonly created: boolean
  /** Rows were marked and not all were removed, but none is stored any more. */
  readonly seenVanished: boolean
}

export interface RowLookup extends StoredWalk {
  readonly marks: readonly Mark[]
  /** Which of them are quarantined: they could not be read when they were handled, and were never sent. */
  readonly quarantined: readonly boolean[]
  /** Which run of which Redis answered; '' where it does not say. */
  readonly server: string
}

export interface WalkChange {
  /** By the clock of the process. */
  readonly nowMs: number
  /** Rows that are handled now and were not before. */
  readonly mark: readonly string[]
  /** Rows of the page that were handled before. */
  readonly shown: readonly string[]
  /** What all these become; `shown` rows that are covered stay so. */
  readonly rowsBecome: 'covered' | number
  readonly joins: readonly { readonly from: number; readonly to: number }[]
  readonly finished: readonly number[]
  /** The open stretches from now on; undefined: as they are. */
  readonly stretches?: readonly Stretch[] | undefined
  /** Of the marked rows, those that could not be read. */
  readonly quarantine: readonly Quarantined[]
  /** Rows that were quarantined and are handled now: they could be read. */
  readonly readable: readonly string[]
  /** Whether the marked rows explain a growth of the feed. */
  readonly explains: boolean
  readonly passedOver: number
  readonly unrouted: number
  readonly scope?: Scope | undefined
  readonly complete?: { readonly atMs: number; readonly total: number } | undefined
  readonly sweep?: SweepPosition | undefined
}

export interface Committed {
  readonly kind: 'done' | 'raced' | 'replaced' | 'lost'
  /** Rows that were not marked before. */
  readonly added: number
  /** The version that the next change is based on. */
  readonly version: number
  /** How many rows were removed from the quarantine because it was full. */
  readonly fellOut: number
}

export interface SweepPosition {
  /** The page to read next, when the feed had `total` rows in pages of `perPage`; 0 before the first sweep. */
  readonly page: number
  readonly perPage: number
  readonly total: number
  /** How many rows from the top the present round has looked at; after a round, how many it had. */
  readonly depth: number
  readonly atMs: number | null
  /** When a round last came to its end. */
  readonly roundAtMs: number | null
}

interface WalkStateOptions {
  readonly redis: RedisClient
  readonly prefix: string
  readonly source: string
  readonly seenWindowMs: number
  readonly rowsKept?: number
  readonly scanned?: number
  readonly quarantine?: QuarantineLimits
}

/**
 * The newest rows are kept however old they are: a month of a busy feed, years of a quiet one. A clock that was wrong for a
 * while cannot remove them.
 */
const seenRowsKept = 20_000
/** Rows that one change looks at to remove those that are forgotten: many more than it marks, and few enough not to delay Redis. */
const rowsScanned = 500

export function createWalkState(options: WalkStateOptions): WalkState {
  const {
    redis,
    source,
    seenWindowMs,
    rowsKept = seenRowsKept,
    scanned = rowsScanned,
    quarantine: limits = quarantineLimits,
  } = options
  const keys = sourceKeys(options.prefix, source)
  const { meta, seen, seenDays, uncovered, stretch, quarantine, quarantined, quarantinedTimes, sweep } = keys
  return {
    source,
    async open({ id, scope, replaces = '', server = '' }) {
      const answer = await redis.eval(
        openScript,
        8,
        ...[meta, seen, uncovered, stretch, quarantine, quarantined, quarantinedTimes, seenDays],
        ...[id, replaces, JSON.stringify(scope), server],
      )
      const [created, seenSize, fields, stretches] = openAnswer.parse(answer)
      if (created === -1) throw new LeaseLost('Redis is another one, or without its last seconds')
      const record = pairs(fields)
      const kept = Number(record['marked'] ?? 0) - Number(record['forgotten'] ?? 0)
      return {
        ...storedWalkOf(record, stretches),
        created: created === 1,
        seenVanished: kept > 0 && seenSize === 0,
      }
    },
    async look(rows) {
      const answer = await redis.eval(
        lookScript,
        5,
        meta,
        seen,
        uncovered,
        stretch,
        quarantinedTimes,
        ...rows,
      )
      const [fields, stretches, seenAt, runs, quarantinedAt, server] = lookAnswer.parse(answer)
      const marks = rows.map((_row, index) => toMark(seenAt[index], runs[index]))
      const quarantined = rows.map((_row, index) => typeof quarantinedAt[index] === 'string')
      return { ...storedWalkOf(pairs(fields), stretches), marks, quarantined, server }
    },
    async commit(base, change) {
      const answer = await redis.eval(
        commitScript,
        9,
        ...[meta, seen, uncovered, stretch, sweep, quarantined, quarantinedTimes],
        ...[keys.seenByHalfHour, seenDays],
        ...commitArgs.inOrder({
          baseId: base.id,
          baseVersion: base.version,
          lookedAtServer: base.server ?? '',
          changeJson: toWire(change),
          callerMs: change.nowMs,
          seenWindowMs,
          scanned,
          badMax: limits.rowsMax,
          badBytesMax: limits.bytesMax,
          rowsKept,
          halfHour: halfHourField(change.nowMs),
          oldestHalfHour: (change.nowMs - unitsKeptMs) / halfHourMs,
        }),
      )
      const [kind, added, version, fellOut] = commitAnswer.parse(answer)
      return { kind, added, version, fellOut }
    },
    async sweep() {
      const record = await redis.hgetall(sweep)
      const count = (name: string) => Number(record[name] ?? 0)
      const instant = (name: string) => (record[name] ? Number(record[name]) : null)
      const place = { page: count('page'), perPage: count('perPage'), total: count('total') }
      return { ...place, depth: count('depth'), atMs: instant('atMs'), roundAtMs: instant('roundAtMs') }
    },
  }
}

function toMark(seenAt: string | null | undefined, run: string | null | undefined): Mark {
  if (typeof seenAt !== 'string') return 'new'
  return typeof run === 'string' ? Number(run) : 'covered'
}

function storedWalkOf(record: Record<string, string>, stretches: string): StoredWalk {
  const count = (name: string) => Number(record[name] ?? 0)
  const known = (name: string) => (record[name] === undefined ? null : Number(record[name]))
  return {
    // No id: there is no stored walk. An id is never empty.
    id: record['id'] ?? '',
    replacedIds: record['replacedId']?.split(' ') ?? [],
    version: count('version'),
    runs: count('runs'),
    marked: count('marked'),
    stretches: stretches ? stretchesSchema.parse(JSON.parse(stretches)) : [],
    facts: {
      scope: scopeSchema.parse(JSON.parse(record['scope'] ?? '{"kind":"all"}')),
      lastCompleteMs: known('lastCompleteMs'),
      total: known('total'),
      expected: known('expected'),
      forgottenMs: count('forgottenMs'),
      createdMs: count('createdMs'),
      passedOver: count('passedOver'),
      unrouted: count('unrouted'),
    },
  }
}

/** The change as the script reads it: covered is -1, and texts that are only stored stay texts. */
function toWire(change: WalkChange): string {
  const { nowMs: _, stretches, quarantine, scope, complete, sweep, rowsBecome, ...rest } = change
  return JSON.stringify({
    ...rest,
    become: rowsBecome === 'covered' ? -1 : rowsBecome,
    bad: Object.fromEntries(quarantine.map((each) => [each.key, JSON.stringify(each)])),
    ...(stretches && {
      stretches: stretches.length > 0 ? JSON.stringify(stretches) : '',
      runs: Math.max(0, ...stretches.map(({ run }) => run)),
    }),
    ...(scope && { scope: JSON.stringify(scope) }),
    ...(complete && { complete }),
    ...(sweep && { sweep: Object.entries(sweep).flatMap(([name, value]) => [name, String(value ?? '')]) }),
  })
}

function pairs(flat: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let index = 0; index + 1 < flat.length; index += 2) record[flat[index] ?? ''] = flat[index + 1] ?? ''
  return record
}
