import { existsSync } from 'node:fs'
import type { Config } from '../config/schema.ts'
import { embeddedPaths, socketUrl } from '../store/embedded-paths.ts'
import { closeRedis, connectRedis, waitForRedis } from '../store/redis.ts'
import { createScheduleState } from '../store/schedule-state.ts'
import { createLogger } from '../telemetry/log.ts'
import { redisTargetOf } from './redis.ts'

/** Without an answer of Redis in this time, the plan is drawn without what the bridge has learned. */
const reachTimeoutMs = 1_500

/** What a running bridge has learned of a source; undefined where its Redis cannot be reached. Never throws. */
export async function readLearned(config: Config, source: string): Promise<unknown> {
  // This must not create the directory of an embedded Redis that never ran.
  if (config.redis.mode === 'embedded' && !existsSync(config.dataDir)) return undefined
  const log = createLogger({ level: 'silent' })
  const redis = connectRedis(
    { target: targetOf(config), profile: 'commands', connectionName: 'alert-bridge-plan' },
    log,
  )
  try {
    await waitForRedis(redis, { log, signal: AbortSignal.timeout(reachTimeoutMs) })
    return await createScheduleState({ redis, prefix: config.redis.prefix, source, log }).load()
  } catch {
    return undefined
  } finally {
    await closeRedis(redis)
  }
}

function targetOf({ redis, dataDir }: Config) {
  return redis.mode === 'embedded' ? { url: socketUrl(embeddedPaths(dataDir)) } : redisTargetOf(redis)
}
