import type { Clock } from '../lib/clock.ts'
import type { RedisClient } from '../store/redis.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createAcknowledged } from './acknowledged.ts'
import type { BreakerNews } from './circuit.ts'
import { Lane, type LaneState } from './lane.ts'
import { defaultTuning, type SinkEntry, type Tuning } from './settings.ts'

export type { BreakerNews } from './circuit.ts'
export type { LaneState } from './lane.ts'

/** The sink side of the queues: one lane a sink, each on its own. */
export interface Sender {
  /** Returns at once; the lanes wait for Redis themselves. */
  start(): void
  /** Within `deadlineMs`, whatever Redis and the sinks do. */
  stop(deadlineMs: number): Promise<void>
  /** Over all replicas and kept over restarts; false when there is no such sink. Throws when Redis is away. */
  pause(sink: string): Promise<boolean>
  resume(sink: string): Promise<boolean>
  /** As this process sees its lanes. */
  states(): LaneState[]
}

export interface SenderOptions {
  /** `blocking`: for the workers. */
  readonly redisBlocking: RedisClient
  /** `commands`: for everything that must fail fast. */
  readonly redis: RedisClient
  readonly prefix: string
  readonly sinks: ReadonlyMap<string, SinkEntry>
  readonly metrics: Metrics
  readonly log: Logger
  readonly clock: Clock
  /** A sink's breaker opened or closed. */
  readonly onBreaker?: (news: BreakerNews) => void
  readonly tuning?: Partial<Tuning>
}

export function createSender(options: SenderOptions): Sender {
  const { sinks, tuning, ...common } = options
  const acknowledged = createAcknowledged()
  const lanes = new Map(
    [...sinks].map(([name, entry]) => [
      name,
      new Lane({ ...common, ...entry, acknowledged, tuning: { ...defaultTuning, ...tuning } }),
    ]),
  )
  return {
    start() {
      for (const lane of lanes.values()) lane.start()
    },
    async stop(deadlineMs) {
      await Promise.all([...lanes.values()].map((lane) => lane.stop(deadlineMs)))
    },
    async pause(sink) {
      await lanes.get(sink)?.pause()
      return lanes.has(sink)
    },
    async resume(sink) {
      await lanes.get(sink)?.resume()
      return lanes.has(sink)
    },
    states: () => [...lanes.values()].map((lane) => lane.state()),
  }
}
