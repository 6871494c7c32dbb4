import { readdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startApp, until } from '../support/app.ts'
import { clean, hasAll, judge, logOf, repeats } from '../support/oracle.ts'
import { startProgram, writeConfig } from '../support/process.ts'
import { freshPrefix, type RedisServer } from '../support/redis.ts'
import { ownRedis, pass, redisScene } from '../support/redis-scene.ts'
import { letLeasesRunOut, metric, readiness } from '../support/scene.ts'

/** What Redis may do to a bridge that runs. */

const long = process.env['LONG'] === '1'
const taken = { status: 204 } as const

describe('Redis that is killed and comes back with its file', () => {
  it('after longer than a lock, while sends run and workers idle: nothing is lost, nothing repeated, on within seconds', {
    timeout: 150_000,
  }, async () => {
    const redis = await ownRedis()
    const { sandbox, hook, shown, text } = await redisScene(redis)
    let slow = true
    const log = logOf('hook', hook, taken, () => (slow ? { ...taken, afterMs: 800 } : undefined))
    const { url } = await startApp(text)
    shown.fire(40)
    await until('sends run', () => log.attempts() >= 5)
    await redis.kill9()
    await until('the bridge says so', async () => (await readiness(url)).includes('Redis'))
    expect((await fetch(`${url}/metrics`)).status).toBe(200)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    const calls = sandbox.requests.length
    shown.fire(10)
    await pass(long ? 70_000 : 17_000)
    // A call that was paid for before the outage may still end in it; none is made without a unit.
    expect(sandbox.requests.length - calls).toBeLessThanOrEqual(1)
    slow = false
    await redis.start()
    const backMs = performance.now()
    await until('a send after the return', () => log.taken.length > 40 || hasAll(shown, log), 15_000)
    expect(performance.now() - backMs).toBeLessThan(10_000)
    await until('everything arrives', () => hasAll(shown, log), 40_000)
    await until('ready again', async () => (await readiness(url)) === 'ok')
    expect(judge(shown, log)).toEqual(clean)
  })

  it('without its last second, under a bridge that runs: what was rewound is taken again, and not sent again', {
    timeout: 40_000,
  }, async () => {
    const redis = await ownRedis()
    const { hook, shown, text, idle } = await redisScene(redis)
    let refusing = false
    const log = logOf('hook', hook, taken, (_mark, attempt) =>
      refusing && attempt % 2 === 0 ? { status: 503 } : undefined,
    )
    await startApp(text)
    shown.fire(20)
    await until('20 are delivered', () => hasAll(shown, log))
    await idle()
    const end = await endOfFile(redis)
    refusing = true
    shown.fire(30)
    await until('some of the next are delivered', () => log.taken.length > 30)
    await redis.kill9()
    await cutFile(end.path, end.bytes)
    refusing = false
    await redis.start()
    await until('everything arrives', () => hasAll(shown, log), 20_000)
    shown.fire()
    await until('what fires next arrives too', () => hasAll(shown, log))
    expect(judge(shown, log)).toEqual(clean)
  })

  it('without its last second, and the bridge died with it: nothing is lost, only that second is repeated', {
    timeout: 60_000,
  }, async () => {
    const redis = await ownRedis()
    const { hook, shown, text, prefix, idle } = await redisScene(redis)
    const log = logOf('hook', hook, taken)
    const config = writeConfig(text)
    const first = startProgram(['run', '--config', config])
    shown.fire(20)
    await until('20 are delivered', () => hasAll(shown, log), 15_000)
    await idle()
    const end = await endOfFile(redis)
    shown.fire(15)
    await until('15 more are delivered', () => hasAll(shown, log))
    first.kill('SIGKILL')
    await first.ended()
    await redis.kill9()
    // In the middle of a command, as a power cut leaves it.
    await cutFile(end.path, end.bytes + 7)
    shown.fire(5)
    await redis.start()
    await letLeasesRunOut(redis.client(), prefix)
    startProgram(['run', '--config', config])
    await until('everything arrives', () => hasAll(shown, log), 35_000)
    const lost = new Map([...shown.ids.keys()].slice(20, 35).map((mark) => [mark, 1]))
    expect(judge(shown, log, { cutOff: lost })).toEqual(clean)
  })
})

/** As README says. */
const endsWithinMs = 5_000

it('Redis that is away keeps no bridge from ending on SIGTERM, and nothing is lost by it', {
  timeout: 60_000,
}, async () => {
  const redis = await ownRedis()
  const { hook, shown, text, prefix } = await redisScene(redis)
  let lastSendMs = 0
  const log = logOf('hook', hook, taken, () => {
    lastSendMs = performance.now() + 300
    return { ...taken, afterMs: 300 }
  })
  const config = writeConfig(text)
  const program = startProgram(['run', '--config', config])
  shown.fire(60)
  await until('sends run', () => log.taken.length >= 3, 15_000)
  await redis.kill9()
  program.kill('SIGTERM')
  expect(await program.ended(30_000)).toBe(0)
  expect(performance.now() - lastSendMs).toBeLessThan(endsWithinMs)
  // What was acknowledged while Redis was away could not be recorded.
  const cutOff = new Map(log.taken.map((mark) => [mark, 1]))
  await redis.start()
  await letLeasesRunOut(redis.client(), prefix)
  startProgram(['run', '--config', config])
  await until('everything arrives', () => hasAll(shown, log), 30_000)
  expect(judge(shown, log, { cutOff })).toEqual(clean)
})

describe('Redis that forgets everything', () => {
  it('under a bridge that runs (FLUSHALL): told loudly, no history is sent, nothing that waited or comes is lost', {
    timeout: 40_000,
  }, async () => {
    const redis = await ownRedis()
    const { sandbox, hook, shown, text } = await redisScene(redis, { history: 250, startFrom: 'now' })
    let down = false
    const log = logOf('hook', hook, taken, () => (down ? { status: 503 } : undefined))
    const { url, lines } = await startApp(text)
    await until('the history is passed over', () => sandbox.requests.length > 2)
    shown.fire(5)
    await until('5 are delivered', () => hasAll(shown, log))
    down = true
    shown.fire(5)
    await until('5 more wait', () => log.attempts() > 8)
    await redis.client().flushall()
    shown.fire(5)
    await until('the loss is told', () =>
      lines.some(({ level, msg }) => level === 'error' && /Redis has lost/.test(String(msg))),
    )
    down = false
    await until('everything arrives', () => hasAll(shown, log), 20_000)
    shown.fire(5)
    await until('what fires next arrives too', () => hasAll(shown, log))
    expect(judge(shown, log)).toEqual(clean)
    expect(await metric(url, 'alert_bridge_state_lost_total{source="main"}')).toBe(1)
  })

  it('while the bridge is down: startFrom decides as on a first start, and says so', {
    timeout: 40_000,
  }, async () => {
    const redis = await ownRedis()
    const { hook, shown, text } = await redisScene(redis, { startFrom: 'now' })
    const log = logOf('hook', hook, taken)
    const first = await startApp(text)
    shown.fire(5)
    await until('5 are delivered', () => hasAll(shown, log))
    await first.app.stop()
    await redis.client().flushall()
    // The feed tells whole seconds: what was fired in the second of the start counts.
    await pass(1_100)
    const { lines } = await startApp(text)
    await until('the start is told', () =>
      lines.some(({ msg }) => /nothing is known of this source/.test(String(msg))),
    )
    shown.fire(5)
    await until('what fires next arrives', () => hasAll(shown, log))
    expect(judge(shown, log)).toEqual(clean)
    expect(repeats(log)).toBe(0)
  })
})

/** Where the append-only file ends now, at the border of a command. */
async function endOfFile(redis: RedisServer): Promise<{ path: string; bytes: number }> {
  const folder = join(redis.dir, 'appendonlydir')
  const name = (await readdir(folder)).find((each) => each.endsWith('.incr.aof'))
  if (name === undefined) throw new Error('there is no append-only file')
  await redis.client().set(freshPrefix(), 'the border')
  // On a slow disk Redis puts off writing for up to two seconds.
  const written = async () => (await redis.client().info('persistence')).includes('aof_buffer_length:0\r')
  await until('Redis has written what it was told', written)
  return { path: join(folder, name), bytes: (await stat(join(folder, name))).size }
}

/** Never lengthens a file that the kill left shorter: zeros are not what a power cut leaves. */
async function cutFile(path: string, bytes: number): Promise<void> {
  await truncate(path, Math.min(bytes, (await stat(path)).size))
}
