import type { Clock } from '../lib/clock.ts'
import type { PollMemory } from './poll-types.ts'

export type {
  PageAnswer,
  PollDeps,
  PollMemory,
  PollOptions,
  PollReason,
  PollResult,
  StartFrom,
} from './poll-types.ts'

/** One for each source, when the process starts: `startFrom: now` means this moment, not that of the first poll. */
export function createPollMemory(clock: Clock): PollMemory {
  return { startedAtMs: clock.now(), known: null }
}
