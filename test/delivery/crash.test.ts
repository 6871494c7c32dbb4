import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useRedis } from '../support/redis.ts'
import { bench, jobs, testSink, until } from './support.ts'

const server = useRedis()

/** Takes a job in a process of its own and is killed with SIGKILL while it sends. */
async function takeAndDie(prefix: string, sink: string): Promise<void> {
  const script = join(import.meta.dirname, 'killed-sender.ts')
  const child = spawn(process.execPath, [script, server.url, prefix, sink], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await ended
}

describe('a process that is killed while it sends', () => {
  it('leaves the alert to the next one, however often, and burns no attempt', async () => {
    const { prefix, queues, sender } = bench(server, ['hook'])
    await queues.enqueue(jobs('hook', 1, 1))
    for (let kill = 1; kill <= 3; kill++) await takeAndDie(prefix, 'hook')
    const sink = testSink('hook')
    sender([sink], { tuning: { lockMs: 400, stalledIntervalMs: 200 }, settings: { retry: { ...once1 } } })
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect(sink.sends.map(({ number }) => number)).toEqual([1])
  }, 40_000)
})

/** One attempt and no more: a burnt one would show. */
const once1 = { attempts: 1, initialDelayMs: 1_000, maxDelayMs: 1_000 }
