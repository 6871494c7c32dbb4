import type { RateLimit } from '../sinks/common-config.ts'
import type { Sink } from '../sinks/sink.ts'
import { type RetryPolicy, spanOf } from './backoff.ts'

/** How a sink is treated; from its config, in milliseconds. */
export interface SinkSettings {
  /** The limit of one attempt, which the sink keeps itself; delivery gives up a little later. */
  readonly timeoutMs: number
  readonly concurrency: number
  /**
   * At most `max` attempts in a window of `per`, over all replicas. A window begins with its first attempt. Where several
   * alerts go out as one message: messages, in any stretch of `perMs`, of one process (`message-limiter.ts`).
   */
  readonly rateLimit?: RateLimit
  readonly retry: RetryPolicy
  /** An alert that fired longer ago is not sent any more; left out, `expireDefaultMs` after it was first seen. */
  readonly expireAfterMs?: number
}

export interface SinkEntry {
  readonly sink: Sink
  readonly settings: SinkSettings
  /** The same in every process for as long as alerts go to the same place, as the same user. */
  readonly receiver?: string
}

/**
 * How the queue of a sink is worked off. Where several alerts go out as one message, all of them must be in hand at the
 * same time, and the rate limit is kept where messages are counted, not jobs.
 */
export function queueSettings({ sink, settings }: SinkEntry): SinkSettings {
  const { batch } = sink
  if (batch === undefined) return settings
  const { rateLimit: _, ...rest } = settings
  const together = batch.plan.max + (batch.plan.kind === 'burst' ? batch.plan.after : 0)
  return { ...rest, concurrency: Math.max(settings.concurrency, together) }
}

/**
 * The way of an alert ends at some time, also where no config says when: after a day, or as long as a schedule takes that
 * spans more than one. Counted from when it was seen, so that history that was asked for is sent.
 */
export function expireDefaultMs({ retry }: Pick<SinkSettings, 'retry'>): number {
  const { ms, msMax } = spanOf(retry)
  return ms > dayMs ? msMax : dayMs
}

const dayMs = 24 * 3_600_000

/** The knobs of the machinery, which no config names; tests turn them. */
export interface Tuning {
  /**
   * A job whose process is gone or frozen is sent again after this at the latest, plus twice `stalledIntervalMs`, plus
   * `takeOverMs`; the lock may have been renewed right before.
   */
  readonly lockMs: number
  /**
   * So often each process looks for such jobs. A look that comes a moment too early after the one before, of whichever
   * process, is left out by BullMQ: also a process that is alone leaves out every fifth.
   */
  readonly stalledIntervalMs: number
  /**
   * So long waits who takes over a job from a process that may have sent it: the time in which that one, when it is there
   * and Redis is back, says so. More than it takes to connect again.
   */
  readonly takeOverMs: number
  readonly watchEveryMs: number
  /** So often a lane looks for what is put off by a config that is not its own, which other processes may still have. */
  readonly othersEveryMs: number
  /** Jobs wait and this process takes none, for so long: its worker is made anew. */
  readonly stuckMs: number
  readonly faultsToOpen: number
  /** Alerts that probe a sink that is down, one after the other, before the next pause. */
  readonly probesARound: number
  /** The longest pause between two rounds of probes. */
  readonly probePauseMsMax: number
}

export const defaultTuning: Tuning = {
  lockMs: 15_000,
  stalledIntervalMs: 2_000,
  takeOverMs: 4_000,
  watchEveryMs: 5_000,
  othersEveryMs: 60_000,
  stuckMs: 30_000,
  faultsToOpen: 5,
  probesARound: 3,
  probePauseMsMax: 60_000,
}
