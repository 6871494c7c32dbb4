import { within } from '../../lib/time-limit.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { SinkQueues } from '../queue/queues.ts'

/** Dead letters that were given up on for the same reason at the same sink. */
interface LetterGroup {
  readonly sink: string
  readonly reason: string
  readonly count: number
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** The newest of them: why it was given up on, with the answer; and the id of its job. */
  readonly sample: string
  readonly sampleJobId: string
}

export interface LetterGroups {
  /** The largest first. */
  readonly groups: readonly LetterGroup[]
  /** Of each sink, only the newest are looked at. */
  readonly looked: number
  readonly total: number
}

/** Reads two fields of each, not its alert, which may be large: 1,000 take about 5 ms. */
export async function readLetterGroups(queues: SinkQueues): Promise<LetterGroups> {
  const work = Promise.all(queues.sinks.map((sink) => lettersOf(queues, sink)))
  const sinks = await within(commandTimeoutMs, 'grouping dead letters', work)
  const groups = new Map<string, LetterGroup>()
  for (const { sink, jobId, atMs, failure } of sinks.flatMap(({ letters }) => letters)) {
    const reason = failureReason(failure)
    const key = `${sink} ${reason}`
    const known = groups.get(key)
    const group = known ?? { sink, reason, count: 0, lastAtMs: atMs, sample: failure, sampleJobId: jobId }
    groups.set(key, { ...group, count: group.count + 1, firstAtMs: atMs })
  }
  return {
    groups: [...groups.values()].sort((a, b) => b.count - a.count),
    looked: sinks.reduce((sum, { letters }) => sum + letters.length, 0),
    total: sinks.reduce((sum, { total }) => sum + total, 0),
  }
}

/** One of the closed union; `stalled` for an alert that ended its process again and again; else `unknown`. */
export function failureReason(failure: string | undefined): string {
  const word = /^(\w+): /.exec(failure ?? '')?.[1]
  return word ?? (failure?.startsWith('job stalled') ? 'stalled' : 'unknown')
}

const lettersMax = 1_000

/** The newest first. */
async function lettersOf({ redis, queue: queueOf }: SinkQueues, sink: string) {
  const queue = queueOf(sink)
  const failed = queue.toKey('failed')
  const [ids, total] = await Promise.all([redis.zrevrange(failed, 0, lettersMax - 1), redis.zcard(failed)])
  const letters = ids.map(async (jobId) => {
    const [failure, endedMs] = await redis.hmget(queue.toKey(jobId), 'failedReason', 'finishedOn')
    return { sink, jobId, failure: failure ?? '', atMs: Number(endedMs ?? 0) }
  })
  return { letters: await Promise.all(letters), total }
}
