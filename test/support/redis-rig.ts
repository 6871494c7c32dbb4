import { bridgeConfig, impatient, leftToSend } from './bridge.ts'
import { onTestFinished } from './finished.ts'
import { showing } from './oracle.ts'
import { freshPrefix, type RedisServer, startRedis } from './redis.ts'
import { startSandbox } from './sandbox.ts'
import { until } from './until.ts'
import { startWebhookReceiver } from './webhook-receiver.ts'

/** A server of the test's own, gone when the test ends. */
export async function ownRedis(flags: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedis({ aof: true, flags })
  onTestFinished(() => server.dispose())
  return server
}

/** One source that shows alerts, one webhook that takes them, and the config of a bridge between them. */
export async function redisRig(redis: RedisServer, more: { history?: number; startFrom?: string } = {}) {
  const sandbox = await startSandbox({ history: more.history ?? 0, requestsPerMinute: 1_000_000 })
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  const prefix = freshPrefix()
  const client = redis.client()
  const left = () => leftToSend(client, prefix, ['hook'])
  const idle = () => until('all is recorded', async () => (await left()) === 0)
  const text = bridgeConfig({
    redis,
    prefix,
    feed: sandbox.url,
    sinks: { hook: hook.url },
    every: '500ms',
    // As by default: many rigs share one process, whose receivers may be slow to answer for it.
    sink: impatient.replace('timeout: 3s', 'timeout: 10s'),
    ...(more.startFrom === undefined ? {} : { startFrom: more.startFrom }),
  })
  return { sandbox, hook, shown, text, prefix, left, idle }
}

export async function pass(ms: number): Promise<void> {
  const startMs = performance.now()
  await until(`${ms} ms`, () => performance.now() - startMs >= ms, ms + 5_000)
}

let turn: Promise<unknown> = Promise.resolve()

/** Rigs of tests that run side by side start one after the other: all at once would keep a busy machine from serving any. */
export function inTurn<T>(start: () => Promise<T>): Promise<T> {
  const own = turn.then(start)
  turn = own.catch(() => {})
  return own
}
