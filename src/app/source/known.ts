import { existsSync, readdirSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../lib/clock.ts'
import { budgetDay } from '../../schedule/budget.ts'
import { embeddedPaths, socketUrl } from '../../store/connection/embedded-paths.ts'
import { closeRedis, connectRedis, waitForRedis } from '../../store/connection/redis.ts'
import { createGrantStore } from '../../store/ledger/grant.ts'
import { createLedger } from '../../store/ledger/ledger.ts'
import { createScheduleState } from '../../store/source/schedule-state.ts'
import { createLogger } from '../../telemetry/log.ts'
import { redisTargetOf } from '../redis.ts'
import { resetOf } from './day.ts'
import { unitsGranted } from './schedule-options.ts'

/** Without an answer of Redis in this time, the plan is drawn without what the bridge has learned. */
const reachTimeoutMs = 1_500

/** What is known of a source beside its config. */
export interface KnownOfSource {
  /** As the bridge stored it. */
  readonly learned: unknown
  /** That the API grants its account a day. */
  readonly unitsOfAccount: number
  /** When its budget days begin, `HH:MM` on the clock of the config's zone. */
  readonly resetsAt: string
}

/** What a bridge has learned of a source of the config; undefined where its Redis cannot be reached. Never throws. */
export async function readLearned(config: Config, source: string): Promise<KnownOfSource | undefined> {
  const sourceConfig = config.sources[source]
  if (sourceConfig === undefined) return undefined
  const { account, budget } = sourceConfig
  // This must not create the directory of an embedded Redis that never ran; a package or a volume may have made it, empty.
  if (config.redis.mode === 'embedded' && isAbsentOrEmpty(config.dataDir))
    return { learned: undefined, unitsOfAccount: budget.unitsPerDay, resetsAt: budget.resetsAt }
  const log = createLogger({ level: 'silent' })
  const redis = connectRedis(
    { target: targetOf(config), profile: 'commands', connectionName: 'alert-bridge-plan' },
    log,
  )
  try {
    await waitForRedis(redis, { log, signal: AbortSignal.timeout(reachTimeoutMs) })
    const { prefix } = config.redis
    const dayOf = (nowMs: number) => budgetDay(nowMs, budget)
    const ledger = createLedger({ redis, prefix, source, account, ...budget, budgetDay: dayOf })
    const grants = createGrantStore({ redis, prefix, source, account })
    return {
      learned: await createScheduleState({ redis, prefix, source, log }).load(),
      unitsOfAccount: await unitsGranted(grants, sourceConfig, systemClock.now()),
      resetsAt: resetOf(budget, (await ledger.apiDay())?.day),
    }
  } catch {
    return undefined
  } finally {
    await closeRedis(redis)
  }
}

function isAbsentOrEmpty(dir: string): boolean {
  return !existsSync(dir) || readdirSync(dir).length === 0
}

function targetOf({ redis, dataDir }: Config) {
  return redis.mode === 'embedded' ? { url: socketUrl(embeddedPaths(dataDir)) } : redisTargetOf(redis)
}
