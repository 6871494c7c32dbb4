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
   * alerts go out as one message: messages, in any stretch of `per`, of one process (`message/limiter.ts`).
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

/** The settings of a sink's queue and its worker. */
export interface QueueSettings extends SinkSettings {
  readonly rateLimit: RateLimit
}

/**
 * A hold (`queue.rateLimit`) works only in queues that have a limit, so those without one get a limit that no sink
 * reaches.
 */
export const noLimit: RateLimit = { max: 1_000_000_000, per: 1_000 }

/**
 * Where several alerts go out as one message, the worker must take all of them at the same time, those of every target.
 * Concurrency and rate limit are applied to messages (`message/limiter.ts`), not to jobs.
 */
export function queueSettings({ sink, settings }: SinkEntry): QueueSettings {
  const { batch } = sink
  if (batch === undefined) return { ...settings, rateLimit: settings.rateLimit ?? noLimit }
  const ofTarget = batch.plan.max + (batch.plan.kind === 'burst' ? batch.plan.after : 0)
  const together = ofTarget * sink.targets.length
  return { ...settings, rateLimit: noLimit, concurrency: Math.max(settings.concurrency, together) }
}

/**
 * An alert expires also where the config does not say when: after a day, or after its whole retry schedule where that is
 * longer. Counted from when it was seen, so that old alerts within `startFrom` are sent.
 */
export function expireDefaultMs({ retry }: Pick<SinkSettings, 'retry'>): number {
  const known = expireDefaults.get(retry)
  if (known !== undefined) return known
  const { ms, msMax } = spanOf(retry)
  const expireMs = ms > dayMs ? msMax : dayMs
  expireDefaults.set(retry, expireMs)
  return expireMs
}

/** Asked for several times a send. */
const expireDefaults = new WeakMap<RetryPolicy, number>()

const dayMs = 24 * 3_600_000

/** Internal limits that are not in the config; tests change them. */
export interface Tuning {
  /**
   * A job whose process is gone or frozen is sent again after this at the latest, plus twice `stalledIntervalMs`, plus
   * `takeOverMs`; the lock may have been renewed right before.
   */
  readonly lockMs: number
  /**
   * How often each process looks for such jobs while any job is taken. BullMQ skips a look that comes a moment too soon after the one
   * before, of whichever process; even of a process that is alone it skips every fifth.
   */
  readonly stalledIntervalMs: number
  /**
   * How long a process waits with a job that it took over: in this time the former process, if it still runs, writes
   * down that it has sent it. More than it takes to connect to Redis again.
   */
  readonly takeOverMs: number
  /** How often a lane looks at its queue. Less than `lockMs`: by then it knows that a job is taken, which may be one to take over. */
  readonly watchEveryMs: number
  /** How often a lane looks for alerts that a process with another config has delayed. */
  readonly othersEveryMs: number
  /** When jobs wait and this process takes none for so long, it replaces its worker. */
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
