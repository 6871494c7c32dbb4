import type { Clock } from '../../lib/clock.ts'
import { formatDuration } from '../../lib/duration.ts'
import type { QueueView } from '../queue/view.ts'
import type { Tuning } from '../settings.ts'

/** What this process' own worker does. */
interface OwnWork {
  /** It could take one more. */
  readonly room: boolean
  /** How many it has taken since it began. */
  readonly taken: number
}

/** Looks in a row that found the same standstill. */
interface Standstill {
  readonly sinceMs: number
  readonly looks: number
  readonly waiting: number
  /** What would have changed if a job had been taken. */
  readonly progress: string
}

/** The standstill after one more look; undefined while jobs are taken. `own`: undefined where others send. Pure. */
export function standstill(
  before: Standstill | undefined,
  view: QueueView | undefined,
  own: OwnWork | undefined,
  nowMs: number,
): Standstill | undefined {
  // A queue that cannot be read shows nothing: an outage of Redis is no stopped worker.
  if (!view || view.waiting === 0 || view.paused || view.limited) return undefined
  if (own ? !own.room : view.locked > 0) return undefined
  const { waiting } = view
  const progress = own ? `${own.taken} taken` : `next is ${view.next}`
  if (before?.progress !== progress) return { sinceMs: nowMs, looks: 1, waiting, progress }
  return { ...before, looks: before.looks + 1, waiting }
}

/** Alerts that wait and are not taken, for so long that it is no coincidence. */
export interface Stuck {
  readonly waiting: number
  readonly forMs: number
  /** For people. */
  readonly reason: string
}

interface WatchOptions {
  readonly tuning: Pick<Tuning, 'watchEveryMs' | 'stuckMs'>
  readonly clock: Clock
  own(): OwnWork | undefined
  /** When it is found stuck, and again after as long each time that it still is. */
  onStuck(stuck: Stuck): void
}

/**
 * Notices that jobs wait and no worker takes them: BullMQ workers have been seen to stop without an error. Only the work
 * of this process counts; busy replicas do not show that its own worker runs.
 */
export class Watchdog {
  readonly #options: WatchOptions
  /**
   * Looks are counted, not time: while a process is frozen it makes no look, and a clock may be set. A worker that runs
   * checks its queue at least every ten seconds.
   */
  readonly #looksToBeStuck: number
  #standstill: Standstill | undefined
  #looking = false

  constructor(options: WatchOptions) {
    this.#options = options
    const { watchEveryMs, stuckMs } = options.tuning
    this.#looksToBeStuck = 1 + Math.ceil(stuckMs / watchEveryMs)
  }

  /** To be called every `watchEveryMs`. */
  async look(view: Promise<QueueView>): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    const { own, clock, onStuck } = this.#options
    const found = await view.catch(() => undefined)
    this.#looking = false
    this.#standstill = standstill(this.#standstill, found, own(), clock.monotonicMs())
    const stuck = this.stuck
    const looks = this.#standstill?.looks ?? 0
    if (stuck && (looks - this.#looksToBeStuck) % (this.#looksToBeStuck - 1) === 0) onStuck(stuck)
  }

  get stuck(): Stuck | undefined {
    const { own, clock } = this.#options
    const found = this.#standstill
    if (found === undefined || found.looks < this.#looksToBeStuck) return undefined
    const { waiting, sinceMs } = found
    const forMs = clock.monotonicMs() - sinceMs
    const alerts = waiting === 1 ? '1 alert waits' : `${waiting} alerts wait`
    const nobody = own() ? 'this process takes none' : 'no sender takes one'
    return { waiting, forMs, reason: `${alerts} and ${nobody}, for ${formatDuration(forMs)}` }
  }
}
