import type { Schedule } from '../schedule/schedule.ts'
import type { Lease } from '../store/lease.ts'
import type { PollerStatus } from '../store/source-status.ts'
import type { PollReason, PollResult } from './poll-types.ts'
import type { PageTally } from './poller-page.ts'

/** What a replica knows while it is the one that polls. */
export interface Lead {
  readonly lease: Lease
  readonly schedule: Schedule
  lastStartMs: number | null
  lastReason: PollReason | null
  refusedUntilMs: number | undefined
  failures: number
  stopped: { reason: string; retryAtMs: number } | undefined
  hotUntilMs: number
  /** The budget day in which no more sweeps are made: its round is done, or one of them failed. */
  sweptDay: string | undefined
  /** The poll whose line is written once the next instant is known. */
  done: { result: PollResult; tally: PageTally; startMs: number; endMs: number } | undefined
}

/** A new leader knows what the last one told; what that one only thought is asked anew. */
export function newLead(lease: Lease, schedule: Schedule, known: PollerStatus): Lead {
  return {
    lease,
    schedule,
    lastStartMs: known.lastPollAtMs,
    // A catch-up that a restart broke off goes on at its pace.
    lastReason: known.behind && known.lastOkAtMs !== null ? 'page_limit' : null,
    refusedUntilMs: undefined,
    failures: 0,
    stopped: undefined,
    // What the snapshot remembers of it may have been taken back.
    hotUntilMs: -1,
    sweptDay: undefined,
    done: undefined,
  }
}
