import type { RowMark, WalkState } from '../../src/store/walk-state.ts'
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
        return { ...look, marks: keys.map((key): RowMark => (Number(key) > greatest ? 'new' : 'covered')) }
      }),
  },
  'covers rows that belong to no stretch': {
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
    state: (twin) => ({
      ...methods(twin),
      commit: (base, change) => twin.commit({ ...base, version: twin.version }, change),
    }),
  },
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

function asCovered(mark: RowMark): RowMark {
  return mark === 'new' ? 'new' : 'covered'
}

/** The open stretch, moved to wherever the page begins. */
function placedAt({ feed, lastRead }: World, stretches: Look['stretches']): Look['stretches'] {
  const [top, ...others] = stretches
  if (top === undefined || lastRead.page === 1) return stretches
  return [{ ...top, end: (lastRead.page - 1) * feed.perPage, total: lastRead.total }, ...others]
}
