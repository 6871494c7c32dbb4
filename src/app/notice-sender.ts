import { createHash } from 'node:crypto'
import type { DeliveryJob } from '../alert/job.ts'
import type { SinkQueues } from '../delivery/queues.ts'
import type { Clock } from '../lib/clock.ts'
import { isRedisAway } from '../store/redis.ts'
import type { Logger } from '../telemetry/log.ts'
import { type Notice, noticeAlert } from './notices.ts'

interface NoticeSenderOptions {
  /** The config in force. */
  readonly active: () => {
    /** Names of sinks. */
    readonly operators: readonly string[]
    readonly queues: Pick<SinkQueues, 'enqueue'>
    readonly targets: ReadonlyMap<string, readonly (string | undefined)[]>
  }
  readonly clock: Clock
  readonly log: Logger
}

/** How many notices that Redis did not take are kept; older ones are dropped. */
const unsentMax = 100

/**
 * `sendNotice` only makes the jobs and cannot fail, so that a notice which Redis has as sent is sent, perhaps later. `sendUnsent`
 * puts the jobs into the queues; a queue that refuses one does not delay the others.
 */
export function noticeSender({ active, clock, log }: NoticeSenderOptions) {
  let lastId = 0
  let unsent: (readonly DeliveryJob[])[] = []
  const sendNotice = (notice: Notice) => {
    const { operators, targets } = active()
    // Two notices may be sent in the same millisecond, also by two replicas.
    lastId = Math.max(lastId + 1, clock.now() * 1_000 + thousandthOf(notice))
    const alert = noticeAlert(notice, lastId, clock.now())
    const subject = 'sink' in notice ? notice.sink : undefined
    const receivers = operators.filter((sink) => sink !== subject)
    log.info({ notice: notice.kind, operators: receivers }, alert.headline)
    for (const sink of receivers)
      unsent.push(
        (targets.get(sink) ?? [undefined]).map((target) => ({
          sink,
          alert,
          seenAtMs: clock.now(),
          ...(target === undefined ? {} : { target }),
        })),
      )
    unsent = unsent.slice(-unsentMax)
  }
  /** A job that is repeated keeps its id, so it is sent once. Throws the error of the first queue that refused. */
  const sendUnsent = async () => {
    // An operator may have left the config meanwhile.
    const { operators, queues } = active()
    const refused: unknown[] = []
    for (const jobs of unsent)
      try {
        await queues.enqueue(jobs.filter(({ sink }) => operators.includes(sink)))
        unsent = unsent.filter((each) => each !== jobs)
      } catch (thrown) {
        // Otherwise later notices would be stored before this one if Redis came back in between.
        if (isRedisAway(thrown)) throw thrown
        refused.push(thrown)
      }
    if (refused.length > 0) throw refused[0]
  }
  return { sendNotice, sendUnsent }
}

/** A number below 1,000; two notices seldom get the same. */
function thousandthOf(notice: Notice): number {
  return createHash('sha256').update(JSON.stringify(notice)).digest().readUInt32BE() % 1_000
}
