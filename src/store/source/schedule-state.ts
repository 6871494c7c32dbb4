import * as z from 'zod'
import { readJson } from '../../alert/json/json.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { RedisClient } from '../connection/redis.ts'
import { sourceKeys } from '../keys.ts'

/**
 * What a schedule has learned, across restarts. Losing it costs punctuality, never an alert: so what cannot be read is
 * logged, and the schedule starts from the config again.
 */
export interface ScheduleState {
  /** The last saved snapshot, or undefined when there is none that can be read. */
  load(): Promise<unknown>
  save(snapshot: unknown): Promise<void>
}

export function createScheduleState(options: {
  redis: RedisClient
  prefix: string
  source: string
  log: Logger
}): ScheduleState {
  const { redis, log, source } = options
  const { profile } = sourceKeys(options.prefix, source)
  return {
    async load() {
      const text = await redis.get(profile)
      if (text === null) return undefined
      const parsed = envelope.safeParse(readJson(text))
      if (parsed.success) return parsed.data.snapshot
      log.warn({ source }, 'what the schedule had learned cannot be read; it starts from the config again')
      return undefined
    },
    async save(snapshot) {
      await redis.set(profile, JSON.stringify({ v: 1, snapshot } satisfies z.input<typeof envelope>))
    },
  }
}

const envelope = z.object({ v: z.literal(1), snapshot: z.unknown() })
