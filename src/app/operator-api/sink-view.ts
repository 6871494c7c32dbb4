import type { LagView, LastResult, SinkView } from '../../admin/status-view.ts'
import { cut } from '../../alert/text.ts'
import { paceMs, type SinkQueueView } from '../../delivery/records/delivery-log.ts'
import type { LaneState } from '../../delivery/sender.ts'
import type { Pause } from '../../store/pauses.ts'
import { printable } from '../../telemetry/printable.ts'
import { iso, isoOf } from './views.ts'

export function sinkView(
  about: { name: string; type: string; lag: LagView | null },
  lane: LaneState | undefined,
  queue: SinkQueueView | undefined,
  pause: Pause | undefined,
  nowMs: number,
): SinkView {
  const { counts } = queue ?? {}
  return {
    name: about.name,
    type: about.type,
    state: queue?.paused ? 'paused' : lane?.stuck ? 'stuck' : lane?.breaker === 'open' ? 'open' : 'active',
    reason: (queue?.paused && pause?.comment) || (lane?.stuck?.reason ?? lane?.reason ?? null),
    failingSince: iso(lane?.openSinceMs),
    nextProbeAt: lane?.breaker === 'open' ? iso(lane.heldUntilMs) : null,
    pausedUntil: queue?.paused ? iso(pause?.untilMs) : null,
    waiting: counts?.waiting ?? null,
    active: counts?.active ?? null,
    delayed: counts?.delayed ?? null,
    dead: counts?.failed ?? null,
    deliveredToday: queue?.deliveredSince ?? null,
    lag: about.lag,
    lastResult: lastResult(queue),
    oldestWaitingAt: iso(queue?.oldestWaitingAtMs),
    drainSeconds: drainSecondsOf(queue, nowMs),
    refusedInARow: queue?.refusedInARow ?? null,
  }
}

/** At the pace since the oldest of them was queued: before that, alerts may have been fewer than the sink can take. */
function drainSecondsOf(queue: SinkQueueView | undefined, nowMs: number): number | null {
  const { counts, oldestWaitingAtMs, endedOfLate = 0 } = queue ?? {}
  if (!counts || oldestWaitingAtMs === undefined || endedOfLate === 0) return null
  const spanMs = Math.min(paceMs, Math.max(1_000, nowMs - oldestWaitingAtMs))
  return Math.round((counts.waiting * spanMs) / endedOfLate / 1_000)
}

function lastResult(queue: SinkQueueView | undefined): LastResult | null {
  const { lastDeliveredAtMs = 0, lastDeadAtMs = 0, lastDeadReason = 'given up on' } = queue ?? {}
  if (lastDeliveredAtMs === 0 && lastDeadAtMs === 0) return null
  return lastDeliveredAtMs >= lastDeadAtMs
    ? { at: isoOf(lastDeliveredAtMs), kind: 'delivered', text: 'acknowledged' }
    : { at: isoOf(lastDeadAtMs), kind: 'dead', text: printable(cut(lastDeadReason, resultCharsMax)) }
}

/** A receiver may answer with a page. */
const resultCharsMax = 300
