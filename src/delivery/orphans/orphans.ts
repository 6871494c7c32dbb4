import { NotFoundError, UserError } from '../../lib/errors.ts'
import { within } from '../../lib/time-limit.ts'
import type { NameStore, SinkNames } from '../../store/source/names.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { PortionOptions } from '../records/portion.ts'
import type { PortionOrder } from '../records/selection.ts'
import { dryStep } from './dry-run.ts'
import { type OrphanPortion, runOrphanPortion } from './steps.ts'
import { tidyOrphan } from './tidy.ts'
import { dropStep, moveStep } from './work.ts'

/**
 * Alerts of sinks that the config does not name (any more): they stay in their queue, from which nobody sends, until the
 * name comes back, or an operator moves or drops them.
 */
export interface Orphans {
  /** Sinks of no config that have alerts left, by name. `known`: the names, where they were read just now. */
  list(known?: SinkNames): Promise<readonly OrphanedSink[]>
  /** Sinks of no config, also those without an alert left. */
  unserved(): Promise<readonly string[]>
  /**
   * Sinks that are not in this config of which anything is kept, be it only what they acknowledged; also those of other processes:
   * while a config is rolled out, their records are as good as ours.
   */
  names(): Promise<readonly string[]>
  /**
   * Throws, as `move` and `drop` do, a NotFoundError for a name that is no orphan, and a UserError for a sink that another process
   * has in its config.
   */
  check(sink: string): Promise<void>
  /**
   * Gives its alerts to the sink `to`, with the time at which they were first seen and no regard to their age; dead
   * letters become dead letters there, or are sent with the rest (`retry`). What `to` was given already stays as it is.
   */
  move(
    sink: string,
    order: PortionOrder & { readonly to: string; readonly retry?: boolean },
  ): Promise<OrphanPortion>
  /** Deletes its alerts, except records of acknowledged ones, which are kept for the retention time. */
  drop(sink: string, order: PortionOrder): Promise<OrphanPortion>
  /** Forgets records that are too old, and the names of which nothing is left. */
  tidy(known?: SinkNames): Promise<void>
}

interface OrphanedSink extends OrphanCounts {
  readonly sink: string
}

/** The alerts that are left of a sink, by their state. */
export interface OrphanCounts {
  /** To be sent; also what a process was sending when it was killed. */
  readonly waiting: number
  /** Being sent at this moment by a process that had the sink in its config. */
  readonly sending: number
  /** To be tried again. */
  readonly delayed: number
  readonly dead: number
}

interface OrphansOptions extends PortionOptions {
  readonly names: NameStore
  readonly prefix: string
  readonly retention: { readonly ageMs: number }
}

export function createOrphans(options: OrphansOptions): Orphans {
  const { queues, names } = options
  const notOurs = (sinks: readonly string[]) => sinks.filter((sink) => !queues.sinks.includes(sink))
  const unnamed = async (known?: SinkNames) => {
    const [sinks, served] = known
      ? [known.sinks, known.served]
      : await Promise.all([names.sinks(), names.served()])
    return notOurs(sinks).filter((sink) => !served.has(sink))
  }
  const orphan = async (sink: string) => {
    const reading = Promise.all([unnamed(), names.served()])
    const [found, served] = await within(commandTimeoutMs, 'reading the names', reading)
    if (found.includes(sink)) return queues.anyQueue(sink)
    if (served.has(sink) && !queues.sinks.includes(sink))
      throw new UserError(`Another process has the sink ${sink} in its config and sends its alerts.`)
    throw new NotFoundError(`There is no orphan ${sink}.`)
  }
  return {
    async list(known) {
      const reads = unnamed(known).then((found) => Promise.all(found.map((sink) => countsOf(options, sink))))
      const counts = await within(commandTimeoutMs, 'counting orphans', reads)
      // What is being sent now may be acknowledged in a moment: alone it does not make an orphan.
      return counts.filter(({ waiting, delayed, dead }) => waiting + delayed + dead > 0)
    },
    unserved: () => within(commandTimeoutMs, 'reading the names', unnamed()),
    names: () => within(commandTimeoutMs, 'reading the names', names.sinks().then(notOurs)),
    async check(sink) {
      await orphan(sink)
    },
    async move(sink, { to, retry = false, ...order }) {
      const queue = await orphan(sink)
      queues.queue(to)
      const step = order.dryRun
        ? dryStep({ queue, to }, options)
        : moveStep({ queue, to, retry, prefix: options.prefix }, options)
      return runOrphanPortion(queue, order, options, step)
    },
    async drop(sink, order) {
      const queue = await orphan(sink)
      const step = order.dryRun ? dryStep({ queue }, options) : dropStep(queue, options)
      return runOrphanPortion(queue, order, options, step)
    },
    async tidy(known) {
      for (const sink of await unnamed(known)) await tidyOrphan(queues.anyQueue(sink), options)
    },
  }
}

/** No process takes so many at once. */
const activeMax = 1_000

async function countsOf({ queues }: OrphansOptions, sink: string): Promise<OrphanedSink> {
  const { redis, anyQueue } = queues
  const queue = anyQueue(sink)
  const [waiting, active, delayed, dead] = await Promise.all([
    redis.llen(queue.toKey('wait')),
    redis.lrange(queue.toKey('active'), 0, activeMax),
    redis.zcard(queue.toKey('delayed')),
    redis.zcard(queue.toKey('failed')),
  ])
  const locks = active.map((id) => redis.exists(queue.toKey(`${id}:lock`)))
  const sending = (await Promise.all(locks)).reduce((sum, each) => sum + each, 0)
  return { sink, waiting: waiting + active.length - sending, sending, delayed, dead }
}
