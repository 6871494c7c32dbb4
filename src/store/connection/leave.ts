import { Redis } from 'ioredis'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../telemetry/log.ts'
import { DirInUseError, type EmbeddedPaths, lockDir } from './embedded-paths.ts'

/**
 * A bridge that starts asks an `api` command that holds its `dataDir` to end, by a message over the server which that command
 * has started. A bridge does not listen, so that a second one is refused as ever.
 */
const channel = 'alert-bridge:leave'
const commandTimeoutMs = 2_000
/** A command that is asked to end first waits for the answer of its call, for 15 s, then for the end of its server, for 20 s. */
const leaveTimeoutMs = 40_000
/** A command listens soon after its server answers, and until that ends. */
const deafMsMax = 1_000
const tryEveryMs = 50

/** Throws a DirInUseError where another bridge has the directory, or a command that does not end in time. */
export async function lockPlace(
  place: EmbeddedPaths,
  clock: Clock,
  asker: { readonly asksToLeave?: boolean; readonly signal?: AbortSignal | undefined; readonly log: Logger },
): Promise<() => void> {
  const deadlineMs = clock.monotonicMs() + leaveTimeoutMs
  let deafMs = Number.POSITIVE_INFINITY
  for (let asked = false; ; ) {
    try {
      return await lockDir(place.dir)
    } catch (thrown) {
      const nowMs = clock.monotonicMs()
      if (!(thrown instanceof DirInUseError) || !asker.asksToLeave || nowMs > deadlineMs) throw thrown
      const answer: LeaveAnswer = asked ? 'no server' : await askToLeave(place.socketPath)
      // Where no server answers, the command is about to start its own, or to end.
      deafMs = answer === 'nobody listens' ? Math.min(deafMs, nowMs) : Number.POSITIVE_INFINITY
      if (nowMs > deafMs + deafMsMax) throw thrown
      if (answer === 'will end')
        asker.log.info({ dir: place.dir }, 'an api command holds dataDir; it was asked to end')
      asked ||= answer === 'will end'
    }
    await clock.sleep(tryEveryMs, asker.signal)
  }
}

type LeaveAnswer = 'will end' | 'nobody listens' | 'no server'

/** Whether a command got the message, and will end. Never rejects. */
async function askToLeave(socketPath: string): Promise<LeaveAnswer> {
  const redis = connection(socketPath)
  try {
    await redis.connect()
    return (await redis.publish(channel, '')) > 0 ? 'will end' : 'nobody listens'
  } catch {
    return 'no server'
  } finally {
    redis.disconnect()
  }
}

/** Calls `leave` when a bridge asks. Returns what ends the listening: until the server has ended, a bridge may ask. */
export async function listenForLeave(socketPath: string, leave: () => void): Promise<() => Promise<void>> {
  const redis = connection(socketPath)
  redis.on('message', leave)
  await redis.connect()
  await redis.subscribe(channel)
  return async () => redis.disconnect()
}

function connection(path: string): Redis {
  const redis = new Redis({ path, lazyConnect: true, retryStrategy: null, commandTimeout: commandTimeoutMs })
  redis.on('error', () => {})
  return redis
}
