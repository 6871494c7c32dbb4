import type { WalkState } from '../../src/store/walk/walk-state.ts'
import type { FeedRow } from '../../src/walk/page.ts'
import type { Mark } from '../../src/walk/walk.ts'
import type { Broken, World } from './run.ts'
import type { TwinState } from './twin.ts'

/**
 * Builds that are wrong on purpose, each by one of the shortcuts that look harmless. The model must catch every one of
 * them, or it proves nothing about the right one.
 */
export const brokenBuilds: Readonly<Record<string, Broken>> = {
  'stops at the first seen row': {
    state: (twin) => withLook(twin, (look) => ({ ...look, marks: look.marks.map(asCovered) })),
  },
  'marks before it enqueues': {
    beforeEnqueue: (twin, keys) => {
      for (const key of keys) twin.mark(key)
    },
  },
  'takes any page for the next one': {
    state: (twin, world) =>
      withLook(twin, (look) => ({ ...look, stretches: placedAt(world, look.stretches) })),
  },
  'takes the greatest id for the newest row': {
    state: (twin) =>
      withLook(twin, (look, keys) => {
        const greatest = Math.max(0, ...[...twin.seen.keys()].map(Number).filter(Number.isFinite))
        return { ...look, marks: keys.map((key): Mark => (Number(key) > greatest ? 'new' : 'covered')) }
      }),
  },
  'covers rows that belong to no stretch': {
    seed: 7,
    state: (twin) => ({
      ...methods(twin),
      async commit(base, change) {
        const committed = await twin.commit(base, change)
        if (change.finished.length > 0 || change.complete) twin.uncovered.clear()
        return committed
      },
    }),
  },
  'covers every page it took': {
    state: (twin) => ({
      ...methods(twin),
      commit: (base, change) => twin.commit(base, { ...change, rowsBecome: 'covered' }),
    }),
  },
  'does not notice another poller': {
    seed: 8,
    state: (twin) => ({
      ...methods(twin),
      commit: (base, change) => twin.commit({ ...base, version: twin.version }, change),
    }),
  },
}

/** Builds of which only a wide history tells that they are wrong. */
export const brokenWideBuilds: Readonly<Record<string, Broken>> = {
  'forgets by age while a walk is open': { memory: { wrong: 'forgets under an open walk' } },
  'dates and forgets by the clock of Redis alone': { memory: { wrong: 'goes by one clock' } },
  'does not know what it has forgotten, and leaves that to the ids of the jobs': {
    state: (twin) => withLook(twin, (look) => ({ ...look, facts: { ...look.facts, forgottenMs: 0 } })),
  },
  'believes any date': { row: (row) => dated(row, (text) => Date.parse(text)) },
  'takes a date of 1405 for older than all that was forgotten': {
    row: (row) => dated(row, (text) => Date.parse(text)),
    state: (twin) =>
      withLook(twin, (look) => {
        const forgottenMs = Math.max(1, look.facts.forgottenMs)
        return { ...look, facts: { ...look.facts, forgottenMs } }
      }),
  },
  'takes what the feed has grown by for new, wherever it looks': {
    row: (row, page, index, { purpose, twin, nowMs }) => {
      const place = (page.page - 1) * page.perPage + index
      const isGained = page.total - place > (twin.historyRows ?? Number.POSITIVE_INFINITY)
      return purpose === 'sweep' && isGained ? dated(row, () => nowMs) : row
    },
  },
  'ends a walk at rows that are older than what was forgotten': {
    state: (twin, world) => ({
      ...methods(twin),
      async commit(base, change) {
        const { stretches } = change
        const top = stretches?.[0]
        if (top === undefined || !isOlder(world, top.frontier, twin.forgottenMs))
          return twin.commit(base, change)
        const atMs = world.nowMs
        const complete = { atMs, total: world.lastRead.total }
        const finished = stretches?.map(({ run }) => run) ?? []
        await twin.commit(base, { ...change, rowsBecome: 'covered', finished, stretches: [], complete })
        // The poll ends here.
        return { kind: 'raced', added: 0, version: twin.version, fellOut: 0 }
      },
    }),
  },
  'covers a page of which it left rows': {
    seed: 15,
    state: (twin) => ({
      ...methods(twin),
      async commit(base, change) {
        const isAside = change.rowsBecome === 0 && !change.stretches
        const nextToCovered = isAside && change.shown.some((key) => twin.isCovered(key))
        return twin.commit(base, nextToCovered ? { ...change, rowsBecome: 'covered' } : change)
      },
    }),
  },
}

function dated(row: FeedRow, read: (text: string) => number): FeedRow {
  if (!row.ok) return row
  const firedAtMs = read(row.alert.firedAt)
  return { ...row, alert: { ...row.alert, firedAtMs: Number.isNaN(firedAtMs) ? null : firedAtMs } }
}

function isOlder({ feed }: World, key: string, instantMs: number): boolean {
  const text = feed.rows.find((row) => row.key === key)?.firedAt
  return text !== undefined && text !== null && Date.parse(text) < instantMs
}

type Look = Awaited<ReturnType<WalkState['look']>>

function withLook(twin: TwinState, change: (look: Look, keys: readonly string[]) => Look): WalkState {
  return { ...methods(twin), look: async (keys) => change(await twin.look(keys), keys) }
}

function methods(twin: TwinState): WalkState {
  return {
    source: twin.source,
    open: (beginning) => twin.open(beginning),
    look: (keys) => twin.look(keys),
    commit: (base, change) => twin.commit(base, change),
    sweep: () => twin.sweep(),
  }
}

function asCovered(mark: Mark): Mark {
  return mark === 'new' ? 'new' : 'covered'
}

/** The open stretch, moved to wherever the page begins. */
function placedAt({ feed, lastRead }: World, stretches: Look['stretches']): Look['stretches'] {
  const [top, ...others] = stretches
  if (top === undefined || lastRead.page === 1) return stretches
  return [{ ...top, end: (lastRead.page - 1) * feed.perPage, total: lastRead.total }, ...others]
}
