import type { Worker } from 'bullmq'
import type { RedisClient } from '../../store/connection/redis.ts'

type QueueWorker = Pick<Worker, 'toKey' | 'getBackend'>

interface Asking<T> {
  readonly worker: QueueWorker
  readonly redis: RedisClient
  readonly token: string
  /** The jobs that the worker knows of once it was answered, or refused: one may be undefined. */
  readonly known: (answer: T | undefined) => readonly (string | undefined)[]
}

/**
 * A Redis that was frozen first does what had reached it, also for connections that were given up on meanwhile, and one that was killed
 * has done what it did not answer any more: it takes a job for a question that the driver has asked again since. Nobody here knows of
 * that job, and others would wait for its lock to run out, so it is put back. Under one token only one job is taken at a time.
 */
export async function keepingNone<T>(
  { worker, redis, token, known }: Asking<T>,
  ask: () => Promise<T>,
): Promise<T> {
  const askedMs = performance.now()
  const losses = lossesOf(redis)
  const { count } = losses
  let answer: T | undefined
  try {
    answer = await ask()
    return answer
  } finally {
    if (losses.count !== count || performance.now() - askedMs > lateMs)
      await putBackUnknown(worker, redis, token, known(answer)).catch(() => {})
  }
}

/** How often the connection was lost, or one to a node, since this was first asked for. */
function lossesOf(redis: RedisClient): { readonly count: number } {
  const known = lossesByClient.get(redis)
  if (known !== undefined) return known
  const losses = { count: 0 }
  redis.on(redis.isCluster ? '-node' : 'close', () => (losses.count += 1))
  lossesByClient.set(redis, losses)
  return losses
}

const lossesByClient = new WeakMap<RedisClient, { readonly count: number }>()

async function putBackUnknown(
  worker: QueueWorker,
  redis: RedisClient,
  token: string,
  known: readonly (string | undefined)[],
): Promise<void> {
  const ids = (await redis.lrange(worker.toKey('active'), 0, -1)).filter((id) => !known.includes(id))
  if (ids.length === 0) return
  const locks = await redis.mget(ids.map((id) => worker.toKey(`${id}:lock`)))
  for (const [at, id] of ids.entries())
    if (locks[at] === token) await worker.getBackend().moveJobFromActiveToWait(id, token)
}

/** Less than the driver waits before it gives up on a connection, and more than Redis takes to answer. */
const lateMs = 1_000
