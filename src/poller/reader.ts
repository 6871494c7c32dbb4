import type { Exchange } from '../feed/client.ts'
import { unitsOf } from '../feed/endpoints.ts'
import { FeedError } from '../feed/errors.ts'
import type { PageAnswer } from '../intake/poll-types.ts'
import { toError } from '../lib/errors.ts'
import { pauseMsMax } from '../schedule/memory.ts'
import { isRedisAway } from '../store/connection/redis-errors.ts'
import type { Reservation } from '../store/ledger/ledger.ts'
import { type Lease, LeaseLost } from '../store/source/lease.ts'
import type { Metrics, Purpose } from '../telemetry/metrics.ts'
import { type CountedUnits, type GrantedBudget, spentBefore } from './budget.ts'
import type { Stopped } from './next-poll.ts'
import { type PollerDeps, type PollerLimits, pauses, type ReadPage } from './settings.ts'

/**
 * Reads one page for a walk: checks the lease, reserves the unit, makes the call, and stores a 429 for every replica. Makes
 * no call without a reservation, and none during the pause after a 429.
 */
interface PageReader {
  readonly read: ReadPage
  /** What happened since this reader was made; one reader a poll. */
  readonly tally: Readonly<CallTally>
}

/** `ending` is aborted when what was read is no longer to be compared. */
export type ReaderWork<T> = (reader: PageReader, ending: AbortSignal) => Promise<T>

export interface CallTally {
  /** Calls made, each for its units, whatever their result. */
  calls: number
  /** What the last call was granted with. */
  granted: CountedUnits | undefined
  /** The last refusal of the ledger. */
  refused: Extract<Reservation, { ok: false }> | undefined
  /** The error of the last call that failed. */
  feedError: FeedError | undefined
  /** Of the token that the calls were made with. */
  tokenFingerprint: string | undefined
  /** Redis did not answer when a unit was to be reserved. */
  redisAway: boolean
}

type ReaderDeps = Pick<
  PollerDeps,
  'source' | 'ledger' | 'feed' | 'clock' | 'log' | 'metrics' | 'budgetDay'
> & {
  readonly limits: Pick<PollerLimits, 'unitsPerDay'>
  readonly granted: GrantedBudget
}

/** `stopping` ends the walk at the next page, `abort` the call under way. */
interface ReaderSignals {
  readonly stopping: AbortSignal
  readonly abort: AbortSignal
}

/** What the reader needs of the leader. */
interface ReaderLimits {
  readonly lease: Lease
  /** Units of the day that pages beneath the first leave to fresh polls. */
  readonly keptForHead: { readonly units: number }
  /** By the monotonic clock; until then pages beneath the first are not read: they failed again and again. */
  readonly walkRestUntilMs: number
}

function createPageReader(
  deps: ReaderDeps,
  { lease, keptForHead, walkRestUntilMs }: ReaderLimits,
  { stopping, abort }: ReaderSignals,
  onCall: () => void,
): PageReader {
  const tally: CallTally = {
    calls: 0,
    granted: undefined,
    refused: undefined,
    feedError: undefined,
    redisAway: false,
    tokenFingerprint: undefined,
  }
  return {
    tally,
    async read(page, purpose) {
      if (stopping.aborted) return failed(new FeedError('aborted', 'the bridge is stopping'))
      if (purpose === 'walk' && deps.clock.monotonicMs() < walkRestUntilMs)
        return { kind: 'refused', why: 'rest' }
      const trouble = deps.feed.tokenTrouble()
      if (trouble) {
        tally.feedError = trouble
        return failed(trouble)
      }
      const tokenFingerprint = deps.feed.tokenFingerprint()
      tally.tokenFingerprint ??= tokenFingerprint
      if (tokenFingerprint !== tally.tokenFingerprint) return tokenChanged
      let reserved: Reservation
      try {
        lease.check()
        reserved = await deps.ledger.reserve({
          cost: pageUnits,
          purpose,
          leaveFresh: purpose !== 'poll',
          ...(purpose === 'walk' ? { leaveUnits: keptForHead.units } : {}),
          leaseToken: lease.token,
        })
        // A process that was frozen in between must not use what it reserved.
        lease.check()
        if (!reserved.ok) {
          tally.refused = reserved
          return { kind: 'refused', why: refusalReason(reserved) }
        }
        count(deps, purpose, reserved)
      } catch (thrown) {
        tally.redisAway ||= isRedisAway(thrown)
        return thrown instanceof LeaseLost ? { kind: 'refused', why: 'lease' } : failed(thrown)
      }
      tally.calls += 1
      onCall()
      const atMs = deps.clock.now()
      try {
        const answer = await deps.feed.deliveries(page, abort, tally.tokenFingerprint)
        tally.granted = { ...reserved, atMs }
        deps.granted.noteAnswer()
        return { kind: 'page', page: answer }
      } catch (thrown) {
        if (thrown instanceof FeedError && thrown.code === 'token_changed') return tokenChanged
        if (thrown instanceof FeedError) tally.feedError = thrown
        if (thrown instanceof FeedError && thrown.code === 'rate_limited') {
          // A refusal shows more of the budget than what was granted before it.
          tally.granted = undefined
          await holdAllReplicas(deps, thrown, reserved)
        }
        return failed(thrown)
      } finally {
        deps.ledger.ended(reserved)
      }
    },
  }
}

/** Whether another token is in the file than the one that a source was stopped with; then it is tried at once. */
export function hasOtherToken(
  leader: { stopped: (Stopped & { readonly tokenFingerprint: string | undefined }) | undefined },
  { tokenTrouble, tokenFingerprint }: ReaderDeps['feed'],
): boolean {
  const { stopped } = leader
  if (stopped?.tokenFingerprint === undefined || tokenTrouble() !== undefined) return false
  if (stopped.retryAtMs === 0 || tokenFingerprint() === stopped.tokenFingerprint) return false
  leader.stopped = { ...stopped, retryAtMs: 0, byPlan: false }
  return true
}

/**
 * Runs `work` with a reader; a shutdown ends it at the next page, the call under way after `drainTimeoutMs`, and what is compared
 * after `pauses.compareMs`: so does a lost lease, at once.
 */
export async function withReader<T>(
  deps: ReaderDeps & { readonly limits: { readonly drainTimeoutMs: number } },
  reading: ReaderLimits & {
    readonly signal: AbortSignal
    readonly onCall: () => void
  },
  work: ReaderWork<T>,
): Promise<T> {
  const { lease, keptForHead, walkRestUntilMs, signal, onCall } = reading
  const drain = abortAfter(signal, deps.limits.drainTimeoutMs)
  const comparing = abortAfter(signal, pauses.compareMs)
  const reader = createPageReader(
    deps,
    { lease, keptForHead, walkRestUntilMs },
    { stopping: signal, abort: drain.signal },
    onCall,
  )
  try {
    return await work(reader, AbortSignal.any([comparing.signal, lease.lost]))
  } finally {
    drain.clear()
    comparing.clear()
    // Of the last call: the units only grow.
    if (reader.tally.granted) await deps.granted.noteGrant(reader.tally.granted)
  }
}

/** Aborts `ms` after the other signal did. */
function abortAfter(first: AbortSignal, ms: number): { signal: AbortSignal; clear(): void } {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const onAbort = () => {
    timer = setTimeout(() => controller.abort(new FeedError('aborted', 'the bridge is stopping')), ms)
  }
  first.addEventListener('abort', onAbort, { once: true })
  return {
    signal: controller.signal,
    clear() {
      first.removeEventListener('abort', onAbort)
      clearTimeout(timer)
    },
  }
}

/** Counts the calls of a feed client, whoever makes them: its `onExchange`. */
export function countExchanges(metrics: Metrics, source: string): (exchange: Exchange) => void {
  return ({ endpoint, status, durationMs }) => {
    metrics.upstreamRequests.inc({ source, endpoint, status: String(status) })
    metrics.upstreamRequestDuration.observe({ source, endpoint }, durationMs / 1_000)
  }
}

/** Whose feed the pages are was found by those before it: the next poll begins at the first page again. */
const tokenChanged: PageAnswer = { kind: 'refused', why: 'token' }

const pageUnits = unitsOf('/api/v1/alerts/deliveries')

/** Whether the day's budget refused the last call; one that may be tried again soon is a failure, so that more of them make it rarer. */
export function waitsForUnits({ feedError }: Pick<CallTally, 'feedError'>): boolean {
  return feedError?.limit === 'budget' && (feedError.retryAfterMs ?? pauseMsMax) >= pauseMsMax
}

async function holdAllReplicas(
  deps: ReaderDeps,
  error: FeedError,
  reserved: Extract<Reservation, { ok: true }>,
): Promise<void> {
  const nowMs = deps.clock.now()
  const limit = error.limit ?? 'minute'
  // Where Redis does not answer, the ledger still keeps the hold for this process.
  const { retryAfterMs } = error
  const holdMs =
    limit === 'minute' || retryAfterMs === undefined ? retryAfterMs : deps.granted.holdAfter(retryAfterMs)
  const waitMs = await deps.ledger.hold(limit, holdMs)
  deps.metrics.upstreamRateLimited.inc({ source: deps.source, limit })
  deps.log.warn(
    { source: deps.source, limit, waitMs: Math.round(waitMs), reason: error.message },
    'poll.rate_limited',
  )
  if (limit !== 'budget') return
  await deps.granted.noteRefusal(spentBefore(reserved, pageUnits, nowMs), retryAfterMs)
}

function count(
  { metrics, source }: ReaderDeps,
  purpose: Purpose,
  reserved: Extract<Reservation, { ok: true }>,
): void {
  metrics.budgetUnits.inc({ source, purpose }, pageUnits)
  metrics.budgetUnitsUsed.set({ source }, reserved.apiDayUsed ?? reserved.unitsUsed)
}

function refusalReason(refused: Extract<Reservation, { ok: false }>): 'budget' | 'minute' | 'hold' | 'lease' {
  return refused.limit !== 'lease' && refused.held ? 'hold' : refused.limit
}

function failed(thrown: unknown): PageAnswer {
  return { kind: 'failed', error: toError(thrown) }
}
