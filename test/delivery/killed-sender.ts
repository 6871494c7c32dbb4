import { createSender } from '../../src/delivery/sender.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import { connectRedis } from '../../src/store/connection/redis.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'

/**
 * A process that takes jobs and never ends a send, to be killed: `node killed-sender.ts URL PREFIX SINK [SIZE]`. With a
 * size it sends messages of that many alerts.
 */
const [url = '', prefix = '', name = '', size = '0'] = process.argv.slice(2)
const log = createLogger({ level: 'silent' })

function sendForEver(): Promise<never> {
  process.stdout.write('sending\n')
  return new Promise(() => {})
}

const max = Number(size)
const plan = { kind: 'digest', max, everyMs: 1, timeZone: 'UTC' } as const
const sink: Sink = {
  name,
  type: 'test',
  targets: [undefined],
  send: sendForEver,
  ...(max > 0 ? { batch: { plan, split: (parcels) => [[...parcels]], send: sendForEver } } : {}),
  close: async () => {},
}
const settings = {
  timeoutMs: 60_000,
  concurrency: 1,
  retry: { attempts: 1, initialDelayMs: 1_000, maxDelayMs: 1_000 },
  expireAfterMs: 3_600_000,
}

createSender({
  retention: () => ({ ageMs: 3_600_000, count: 1_000 }),
  redis: connectRedis({ target: { url }, profile: 'commands' }, log),
  redisBlocking: connectRedis({ target: { url }, profile: 'blocking' }, log),
  prefix,
  sinks: new Map([[name, { sink, settings }]]),
  metrics: createMetrics({ version: 'test', node: 'test' }),
  log,
  clock: systemClock,
  tuning: { lockMs: 400, stalledIntervalMs: 200, takeOverMs: 100 },
}).start()
