import { createProcessState, refreshProcessState, runPoll } from '../../src/intake/poll.ts'
import type { PollOptions } from '../../src/intake/poll-types.ts'
import { runSweep, type SweepOptions } from '../../src/intake/sweep.ts'
import { createQuarantineStore } from '../../src/store/walk/quarantine.ts'
import { createWalkState, type WalkState } from '../../src/store/walk/walk-state.ts'
import { freshPrefix, type RedisServer } from '../support/redis.ts'
import { type MemoryRig, type MemoryRigOptions, memoryRig, rigStartMs } from './memory-rig.ts'

export const minuteMs = 60_000
const dayMs = 86_400_000

/** A source with a feed of its own and a memory in real Redis. */
export function intakeRig(
  server: RedisServer,
  {
    startFrom = 'now',
    seenWindowMs = 30 * dayMs,
    rowsKept,
    wrap = (state) => state,
    ...options
  }: {
    startFrom?: PollOptions['startFrom']
    seenWindowMs?: number
    rowsKept?: number
    wrap?: (state: WalkState) => WalkState
  } & MemoryRigOptions = {},
) {
  const redis = server.client()
  const prefix = freshPrefix()
  const state = createWalkState({
    ...{ redis, prefix, source: 'main', seenWindowMs },
    ...(rowsKept === undefined ? {} : { rowsKept }),
  })
  const rig = memoryRig(wrap(state), options)
  let memory = createProcessState(rig.deps.clock)
  return {
    redis,
    prefix,
    state,
    quarantine: createQuarantineStore({ redis, prefix, source: 'main' }),
    rig,
    feed: rig.feed,
    queues: rig.queues,
    poll: (some: Partial<PollOptions> = {}) =>
      runPoll(rig.deps, { source: 'main', startFrom, processState: memory, ...some }),
    sweep: (some: Partial<SweepOptions> = {}) =>
      runSweep(rig.deps, { source: 'main', startFrom, processState: memory, pagesMax: 100, ...some }),
    standBy: () => refreshProcessState(state, memory),
    /** The process ends and another one begins. */
    restart: () => {
      memory = createProcessState(rig.deps.clock)
    },
    metric: async (
      name:
        | 'alertsSeen'
        | 'alertsDuplicate'
        | 'alertsQuarantined'
        | 'alertsUnrouted'
        | 'feedGap'
        | 'stateLost'
        | 'lastCompleteWalk',
    ) => (await rig.metrics[name].get()).values[0]?.value,
  }
}

/** Rows that were fired before the bridge started, a minute apart, the last one a minute ago. */
export function history(rig: MemoryRig, count: number) {
  return rig.feed.add(count, (index) => rigStartMs - (count - index) * minuteMs)
}

export function ids(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => from + index)
}
