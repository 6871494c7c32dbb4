import type { SinkQueues } from '../../delivery/queue/queues.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NoticeStore } from '../../store/operators/notices.ts'
import type { Troubles } from './troubles.ts'

/**
 * When operators are notified that a sink fails, and that it works again. An outage is over when no replica's breaker was open
 * for a while, and since then a breaker has closed or a delivery has succeeded. So an outage that comes and goes, or that only
 * one replica sees, gives one notice. A delivery counts too, because a process that ends during an outage never closes its
 * breaker. The while is measured by this process' monotonic clock: the wall clocks of replicas differ, and may be set.
 */
interface Outages {
  /** A breaker of this process is open, or was at `atMs`. */
  open(sink: string, reason: string, atMs: number): Promise<void>
  /** A breaker of this process has just closed; to be stored by `noteClosed`. */
  closed(sink: string): void
  noteClosed(sink: string): Promise<void>
  /** Ends the outage if it is over. `begun`: since when people were notified of it, where that was read already. */
  recover(
    sink: string,
    queues: Pick<SinkQueues, 'completedSince'>,
    begun?: ReadonlyMap<string, number>,
  ): Promise<void>
}

interface OutagesOptions {
  readonly store: Pick<NoticeStore, 'since' | 'move' | 'at'>
  readonly troubles: Pick<Troubles, 'begin' | 'end' | 'repeat'>
  readonly clock: Clock
  /** For so long no breaker was open. */
  readonly quietMs: number
}

/** The last breaker that was open, as Redis has it. */
interface LastOpen {
  /** By the clock of its process. */
  readonly openMs: number
  readonly sinceMs: number
  /** When this process saw that first, by the monotonic clock and by its wall clock. */
  readonly seenAtMs: number
  readonly seenMs: number
}

/** A trouble that lasts longer gets another notice. */
export const troubleMs = 24 * 3_600_000

export function createOutages({ store, troubles, clock, quietMs }: OutagesOptions): Outages {
  /** Sinks whose breaker closed in this process, as far as Redis does not have it yet. */
  const closed = new Set<string>()
  const lastOpens = new Map<string, LastOpen>()

  const openAt = async (sink: string) => (await store.at(`open:${sink}`)) ?? 0
  const noteClosed = async (sink: string) => {
    if (!closed.has(sink)) return
    // Stored is after which open breaker, not when: clocks of replicas differ.
    await store.move(`closed:${sink}`, await openAt(sink))
    closed.delete(sink)
  }
  const lastOpenOf = async (sink: string, sinceMs: number): Promise<LastOpen> => {
    const openMs = await openAt(sink)
    const known = lastOpens.get(sink)
    if (known?.openMs === openMs && known.sinceMs === sinceMs) return known
    const seen = { openMs, sinceMs, seenAtMs: clock.monotonicMs(), seenMs: clock.now() }
    lastOpens.set(sink, seen)
    return seen
  }
  return {
    async open(sink, reason, atMs) {
      await troubles.begin(outage(sink), troubleMs, { kind: 'sink_down', sink, reason })
      await store.move(`open:${sink}`, atMs)
    },
    closed: (sink) => void closed.add(sink),
    noteClosed,
    async recover(sink, queues, begun) {
      await noteClosed(sink)
      await troubles.repeat(outage(sink))
      const sinceMs = begun ? begun.get(outage(sink)) : await store.since(outage(sink))
      if (sinceMs === undefined) return void lastOpens.delete(sink)
      const { openMs, seenAtMs, seenMs } = await lastOpenOf(sink, sinceMs)
      if (clock.monotonicMs() - seenAtMs < quietMs) return
      const hasClosed = (await store.at(`closed:${sink}`)) === openMs
      // One that another clock shows to be in the future was open before it was seen here.
      const fromMs = Math.min(Math.max(sinceMs, openMs) + 1, seenMs)
      if (!hasClosed && (await queues.completedSince(sink, fromMs)) === 0) return
      await troubles.end([outage(sink)], { kind: 'sink_up', sink, reason: '' })
    },
  }
}

/** The trouble that a sink fails. */
export function outage(sink: string): string {
  return `breaker:${sink}`
}
