import type { Clock } from '../lib/clock.ts'
import type { WalkState } from '../store/walk/walk-state.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics, Purpose } from '../telemetry/metrics.ts'
import type { FeedPage } from '../walk/page.ts'
import type { StartFrom } from '../walk/scope.ts'
import type { FiringTime, IntakeDeps } from './intake.ts'

/** What a poll and a sweep work with. Their caller has the lease; `readPage` reserves its unit itself. */
export interface PollDeps {
  /** Reserves a unit for `purpose`, then asks the feed for the page (from 1). Never throws. */
  readonly readPage: (page: number, purpose: Purpose) => Promise<PageAnswer>
  readonly state: WalkState
  /** Of the config in force: a reload replaces it. Read once for each page, so that one config handles the whole page. */
  readonly inForce: { readonly intake: IntakeDeps }
  /** Aborted when this process ends soon, or may poll no longer: the page under way is then read again by the next poll. */
  readonly ending?: AbortSignal
  /** Called with the first page of each poll, once its rows are handled. */
  readonly onHead?: (page: FeedPage) => void
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

export type PageAnswer =
  | { readonly kind: 'page'; readonly page: FeedPage }
  /**
   * No call was made: the day's budget, the minute's limit, the API's own 429 or the lost lease forbids it. No unit was
   * spent, but where the lease was lost between the reservation and the call, or the token was changed during the call.
   */
  | { readonly kind: 'refused'; readonly why: 'budget' | 'minute' | 'hold' | 'lease' | 'rest' | 'token' }
  | { readonly kind: 'failed'; readonly error: unknown }

export interface PollOptions {
  readonly source: string
  readonly startFrom: StartFrom
  /** What this process keeps between its polls of this source: one for each source, created at the start. */
  readonly processState: ProcessState
  /** Pages after which the walk of one poll ends, so that the head of the feed is looked at again during a long catch-up. */
  readonly pagesMax?: number
  /** Pages beyond these that may go into looking for a late row when the feed grew by more than the new rows. */
  readonly deeperPagesMax?: number
}

/**
 * Distinguishes a loss of Redis from a first start: only a process that has read the state can notice that it vanished. Of
 * single rows only the topmost is kept here: which rows are seen must be stored in Redis alone, where jobs and marks are
 * lost together.
 */
export interface ProcessState {
  readonly startedAtMs: number
  /** Which run of which Redis has what its poller prepared: a stored walk begins only there. '' where nothing was. */
  server: string
  /** How many pages of a feed that looks foreign were searched for rows that are known; 0: none, or it is ours. */
  searchedTo: number
  /** Which row was on top at the last complete walk, if it was this process that made it. */
  lastHead: { readonly atMs: number; readonly topKey: string } | null
  /** The state that the last poll worked on. */
  known: {
    readonly id: string
    readonly lastCompleteMs: number | null
    readonly total: number | null
    /** Rows that were fired before do not count; null when all do. */
    readonly sinceMs: number | null
    /** How many rows of the feed were history at the first start; null where they were not counted. */
    readonly history: number | null
  } | null
}

export interface PollResult {
  readonly reason: PollReason
  /** The first page was read and its rows are stored: the poll was of use, whatever followed. */
  readonly ok: boolean
  /** Pages read, each a unit. */
  readonly pages: number
  /**
   * Alerts that were handled for the first time, also those that were withheld or that no route wanted, and rows that were
   * quarantined until now; without those that were quarantined by this poll.
   */
  readonly newAlerts: number
  /** Of these, alerts that no route names a sink for. */
  readonly unrouted: number
  /** Rows never shown before that `startFrom` (or the scope after a loss) leaves out. */
  readonly passedOver: number
  /** Rows that were known already. */
  readonly duplicates: number
  readonly quarantined: number
  /** Firing times of the rows never shown before, oldest first; those passed over only teach the profile. */
  readonly fired: readonly FiringTime[]
  /** Why the date of a row that was never shown before is not plausible, for people: one example; null where all are. */
  readonly doubt: string | null
  /** There is more to walk: the next poll continues. */
  readonly behind: boolean
  /** Everything that the feed showed when this poll began is handled, as far as its answers show. */
  readonly finished: boolean
  /** When that was last so, in milliseconds since the epoch; null before the first time. */
  readonly lastCompleteMs: number | null
  /** Rows that appeared below the head, by count, and were looked for once and not found: a sweep may find them. */
  readonly feedGap: number
  /** `meta.total` of the first page; null when it was not read. */
  readonly total: number | null
  /** A person is needed: no row of this page was handled. The next poll checks again. */
  readonly stopped: 'foreign_feed' | null
  /** The state in Redis had vanished; this poll began a new one and walks back to the last complete walk. */
  readonly lost: boolean
  /** What was thrown or answered when `reason` is `failed`, `queue_failed` or `state_failed`. */
  readonly error?: unknown
}

export type PollReason =
  | 'caught_up' // a covered row: the normal end, with or without new rows
  | 'end_of_feed' // the last page was read
  | 'start_bound' // what follows is older than `startFrom`
  | 'empty_feed' // the feed shows no rows
  | 'page_limit' // pagesMax, or the head is due again; the next poll continues
  | 'place_lost' // the feed changed too much: the next poll walks again
  | 'empty_page' // a page without rows that should have some
  | 'refused_budget' // no unit left today
  | 'refused_minute' // the minute's limit
  | 'refused_hold' // the pause after a 429
  | 'refused_lease' // another replica polls now, or another Redis answers than the one that this one took the lease at
  | 'refused_rest' // pages beneath the first failed again and again, and are not read now
  | 'refused_token' // the token was changed since this poll's first page; the next poll begins anew
  | 'failed' // the API's answer was an error
  | 'queue_failed' // not all could be routed and stored: nothing of this page is marked
  | 'state_failed' // Redis did not answer
  | 'state_lost' // Redis lost its data during this poll
  | 'raced' // another poller changed the walk meanwhile
  | 'foreign_feed' // page 1 is not of the feed that this source's stored walk knows
