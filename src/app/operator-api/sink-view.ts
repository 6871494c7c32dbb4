import type { LagView, LastResult, SinkView } from '../../admin/views/status-view.ts'
import { cut } from '../../alert/text/text.ts'
import { paceMs, type SinkQueueView } from '../../delivery/records/sink-queue.ts'
import type { LaneState } from '../../delivery/sender.ts'
import type { Pause } from '../../store/operators/pauses.ts'
import { breakerFreshMs, type StoredBreaker } from '../../store/sink/breakers.ts'
import { printable } from '../../telemetry/printable.ts'
import { isoOf, isoOrNull } from './views.ts'

/** What is known of one sink. The breaker of another process counts, too: it holds the queue of all of them. */
interface SinkFacts {
  readonly about: { readonly name: string; readonly type: string; readonly lag: LagView | null }
  readonly lane: LaneState | undefined
  readonly breaker: StoredBreaker | undefined
  readonly queue: SinkQueueView | undefined
  readonly pause: Pause | undefined
}

export function sinkView({ about, lane, breaker, queue, pause }: SinkFacts, nowMs: number): SinkView {
  const { counts } = queue ?? {}
  const elsewhere = breaker && breaker.ageMs < breakerFreshMs ? breaker : undefined
  const open = lane?.breaker === 'open' ? { ...lane, sinceMs: lane.openSinceMs } : elsewhere
  const reason = queue?.paused ? pause?.comment : (lane?.stuck?.reason ?? open?.reason)
  const state = queue?.paused ? 'paused' : lane?.stuck ? 'stuck' : open ? 'open' : 'active'
  return {
    name: about.name,
    type: about.type,
    state,
    reason: reason ? printable(reason) : null,
    failingSince: isoOrNull(open?.sinceMs),
    // The queue of a paused sink gives out nothing, also no probe.
    nextProbeAt: lane?.breaker === 'open' && !queue?.paused ? isoOrNull(lane.heldUntilMs) : null,
    heldUntil: state === 'active' ? isoOrNull(queue?.heldUntilMs) : null,
    pausedUntil: queue?.paused ? isoOrNull(pause?.untilMs) : null,
    waiting: counts?.waiting ?? null,
    active: counts?.active ?? null,
    delayed: counts?.delayed ?? null,
    dead: counts?.failed ?? null,
    deliveredToday: queue?.deliveredSince ?? null,
    lag: about.lag,
    lastResult: lastResult(queue, [
      lane?.lastFault ?? (open && { atMs: open.sinceMs ?? 0, text: open.reason ?? '' }),
      queue?.lastRetry,
    ]),
    oldestWaitingAt: isoOrNull(queue?.oldestWaitingAtMs),
    // The pace of one that does not send is that at which its alerts are given up on.
    drainSeconds: state === 'active' ? drainSecondsOf(queue, nowMs) : null,
    refusedInARow: queue?.refusedInARow ?? null,
    putOffSince: isoOrNull(putOffSinceMs(queue)),
  }
}

function putOffSinceMs({ oldestTriedAtMs, lastDeliveredAtMs = 0 }: Partial<SinkQueueView> = {}) {
  return oldestTriedAtMs !== undefined && oldestTriedAtMs > lastDeliveredAtMs ? oldestTriedAtMs : undefined
}

/** At the pace since the oldest of them was queued: before that, alerts may have been fewer than the sink can take. */
function drainSecondsOf(queue: SinkQueueView | undefined, nowMs: number): number | null {
  const { counts, oldestWaitingAtMs, endedOfLate = 0 } = queue ?? {}
  if (!counts || oldestWaitingAtMs === undefined || endedOfLate === 0) return null
  const spanMs = Math.min(paceMs, Math.max(1_000, nowMs - oldestWaitingAtMs))
  return Math.round((counts.waiting * spanMs) / endedOfLate / 1_000)
}

/** What asks for a pause is no fault of the sink, so that only the records of its alerts show it. */
function lastResult(
  queue: SinkQueueView | undefined,
  faults: readonly ({ readonly atMs: number; readonly text: string } | undefined)[],
): LastResult | null {
  const [fault] = faults.filter((each) => each !== undefined).sort((a, b) => b.atMs - a.atMs)
  const {
    lastDeliveredAtMs = 0,
    lastDeadAtMs = 0,
    lastDeadReason = 'given up on',
    lastAnswer = 'acknowledged',
  } = queue ?? {}
  if (fault && fault.atMs > Math.max(lastDeliveredAtMs, lastDeadAtMs))
    return { at: isoOf(fault.atMs), kind: 'retry', text: shown(fault.text) }
  if (lastDeliveredAtMs === 0 && lastDeadAtMs === 0) return null
  return lastDeliveredAtMs >= lastDeadAtMs
    ? { at: isoOf(lastDeliveredAtMs), kind: 'delivered', text: shown(lastAnswer) }
    : { at: isoOf(lastDeadAtMs), kind: 'dead', text: shown(lastDeadReason) }
}

function shown(text: string): string {
  return printable(cut(text, resultCharsMax))
}

/** A receiver may answer with a page. */
const resultCharsMax = 300
