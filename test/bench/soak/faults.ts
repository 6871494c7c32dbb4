import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from '../../../src/sandbox/sandbox.ts'
import { answersPing, type RedisServer } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import type { ReceiverAnswer } from '../../support/webhook-receiver.ts'
import type { CountingReceiver } from './receiver.ts'

export interface Rig {
  readonly sandbox: Sandbox
  readonly redis: RedisServer
  readonly receivers: readonly CountingReceiver[]
  readonly bridge: ChildProcess
  /** How long a sink or Redis stays at fault. */
  readonly outageMs: number
}

export interface Fault {
  readonly name: string
  /** Resolves when it is over, as far as the faulty side goes. */
  make(rig: Rig): Promise<unknown>
}

const startTimeoutMs = 60_000
const takes: ReceiverAnswer = { status: 204 }

/** What a long life brings, one after the other and again from the start. Nothing of it may cost an alert. */
export const faults: readonly Fault[] = [
  sink('answers 500', 0, { status: 500 }),
  feed('answers 500', { kind: 'status', status: 500, times: 3 }),
  sink('resets connections', 1, { kind: 'reset' }),
  { name: 'Redis closes all connections', make: ({ redis }) => killClients(redis) },
  sink('never answers', 2, { kind: 'hang' }),
  feed('answers 429', { kind: 'status', status: 429, retryAfter: '2' }),
  sink('asks to wait', 0, { status: 429, headers: { 'retry-after': '2' } }),
  { name: 'the config is read again', make: async ({ bridge }) => bridge.kill('SIGHUP') },
  sink('breaks off its answer', 1, { kind: 'broken', status: 200 }),
  feed('breaks off its answer', { kind: 'cut', times: 2 }),
  {
    name: 'Redis stands still',
    async make({ redis, outageMs }) {
      redis.freeze()
      await sleep(outageMs / 2)
      redis.thaw()
    },
  },
  sink('answers what is no HTTP', 2, { kind: 'garbage' }),
  feed('answers half a JSON text', { kind: 'malformed', times: 2 }),
  {
    name: 'Redis starts again',
    async make({ redis, outageMs }) {
      await redis.stop()
      await sleep(outageMs / 4)
      // On a busy machine it takes its time to read its file.
      await redis
        .start()
        .catch(() => until('Redis answers', () => answersPing(redis.socketPath), startTimeoutMs))
    },
  },
  feed('answers late', { kind: 'slow', delayMs: 2_000, times: 3 }),
]

function sink(name: string, index: number, answer: ReceiverAnswer): Fault {
  return {
    name: `a sink ${name}`,
    async make({ receivers, outageMs }) {
      receivers[index]?.answerWith(answer)
      await sleep(outageMs)
      receivers[index]?.answerWith(takes)
    },
  }
}

function feed(name: string, fault: Parameters<Sandbox['fault']>[0]): Fault {
  return { name: `the feed ${name}`, make: async ({ sandbox }) => sandbox.fault(fault) }
}

async function killClients(redis: RedisServer): Promise<void> {
  const client = redis.client()
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  client.disconnect()
}
