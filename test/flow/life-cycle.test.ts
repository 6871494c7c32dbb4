import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { failureRow } from '../support/failure-row.ts'
import { startProgram, testFolder, writeConfig } from '../support/process.ts'
import { freshPrefix, startRedis, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** The real process from its start to its end. */

const redis = useRedis()

function configText(parts: { redis: string; feed: string; hook: string; more?: string }): string {
  return `
redis: { url: "${parts.redis}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0", adminToken: admin-canary }
sources: { main: { baseUrl: "${parts.feed}", token: sandbox-token, startFrom: beginning, poll: { every: 2s }, budget: { unitsPerDay: 50000 } } }
sinks: { hook: { type: webhook, url: "${parts.hook}", allowPrivateNetworks: true, timeout: 3s } }
routes: [{ sinks: [hook] }]
${parts.more ?? ''}`
}

describe('the daemon', () => {
  it('drains on SIGTERM: the running send finishes, no new poll, exit 0', async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver({ answer: { kind: 'hang' } })
    sandbox.fire()
    const program = startProgram([
      'run',
      '--config',
      writeConfig(configText({ redis: redis.url, feed: sandbox.url, hook: hook.url })),
    ])
    await hook.received(1)
    program.kill('SIGTERM')
    await program.logged('stopping')
    const polls = sandbox.requests.length
    expect(await program.ended(30_000)).toBe(0)
    expect(sandbox.requests.length).toBe(polls)
    expect(program.lines().filter(({ level }) => level === 'error')).toEqual([])
  }, 40_000)

  it('waits for a Redis that is not there, says so once, and starts when it comes', async () => {
    const late = await startRedis({ aof: true })
    await late.stop()
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    sandbox.fire()
    const program = startProgram([
      'run',
      '--config',
      writeConfig(configText({ redis: late.url, feed: sandbox.url, hook: hook.url })),
    ])
    await program.logged('waiting for Redis')
    const { address } = await program.logged('listening')
    expect((await fetch(`${address}/healthz`)).status).toBe(200)
    const ready = await fetch(`${address}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining('Redis')])
    // The page has what it has, and who listens hears of it.
    expect((await fetch(`${address}/`)).status).toBe(200)
    const { body } = await fetch(`${address}/api/v1/events`)
    for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? [])
      if (text.includes('event: change')) break
    expect(sandbox.requests).toHaveLength(0)
    await late.start()
    await hook.received(1, 15_000)
    await until('ready', async () => (await fetch(`${address}/readyz`)).status === 200)
    expect(program.lines().filter(({ msg }) => msg === 'waiting for Redis')).toHaveLength(1)
    program.kill('SIGTERM')
    expect(await program.ended()).toBe(0)
    await late.dispose()
  })

  it('ends on SIGTERM also while it waits for Redis', async () => {
    const config = configText({
      redis: 'unix:///nowhere/redis.sock',
      feed: 'http://127.0.0.1:9',
      hook: 'http://127.0.0.1:9',
    })
    const program = startProgram(['run', '--config', writeConfig(config)])
    await program.logged('waiting for Redis')
    program.kill('SIGTERM')
    expect(await program.ended()).toBe(0)
  })

  it('starts and stops its own Redis, and remembers across restarts what it sent', async () => {
    const folder = testFolder()
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    sandbox.fireMany(3)
    const config = writeConfig(
      configText({ redis: 'embedded', feed: sandbox.url, hook: hook.url, more: `dataDir: ${folder}` }),
      folder,
    )
    for (const expected of [3, 5]) {
      const program = startProgram(['run', '--config', config])
      await hook.received(expected)
      const polls = sandbox.requests.length
      await until('another poll', () => sandbox.requests.length > polls)
      program.kill('SIGTERM')
      expect(await program.ended()).toBe(0)
      sandbox.fireMany(2)
    }
    const ids = hook.requests.map(({ headers }) => headers['webhook-id'])
    expect(new Set(ids).size).toBe(5)
    expect(ids).toHaveLength(5)
  }, 30_000)

  it('does not end by a SIGHUP that comes before it has read its config', async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const pipe = join(testFolder(), 'bridge.yaml')
    execFileSync('mkfifo', [pipe])
    const program = startProgram(['--log-level', 'info', 'run', '--config', pipe])
    let writer: number | undefined
    // It can be opened once somebody reads.
    await until('it reads its config', () => {
      try {
        writer ??= openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
      } catch {}
      return writer !== undefined
    })
    program.kill('SIGHUP')
    writeSync(writer ?? -1, configText({ redis: redis.url, feed: sandbox.url, hook: hook.url }))
    closeSync(writer ?? -1)
    await program.logged('started')
    program.kill('SIGTERM')
    expect(await program.ended()).toBe(0)
  })

  it('ends by a SIGTERM that comes while it loads, also as the first process of a container', async () => {
    // Such a process is not ended by a signal that it does not listen for. The listener for SIGUSR1 is there before anything is loaded.
    const asFirst = `
      const { pid } = process
      Object.defineProperty(process, 'pid', { value: 1 })
      process.on('newListener', (name) => name === 'SIGUSR1' && process.kill(pid, 'SIGTERM'))`
    const text = configText({ redis: redis.url, feed: 'http://127.0.0.1:1', hook: 'http://127.0.0.1:1' })
    const program = startProgram(['run', '--config', writeConfig(text)], {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(asFirst)}`,
    })
    expect(await program.ended()).toBe(0)
  })

  it('reloads on SIGHUP, and goes on with the old config when the new one has mistakes', async () => {
    const folder = testFolder()
    const sandbox = await startSandbox()
    const [first, second] = [await startWebhookReceiver(), await startWebhookReceiver()]
    const text = configText({ redis: redis.url, feed: sandbox.url, hook: first.url })
    const path = writeConfig(text, folder)
    // The level of the command line holds, whatever the config says.
    const program = startProgram(['--log-level', 'info', 'run', '--config', path])
    await program.logged('started')
    writeFileSync(path, 'sinks: [')
    program.kill('SIGHUP')
    await program.logged('reload.refused')
    sandbox.fire()
    await first.received(1)
    writeFileSync(path, `${text.replace(first.url, second.url)}log: { level: error }`)
    program.kill('SIGHUP')
    await program.logged('reloaded')
    sandbox.fire()
    await second.received(1)
    expect(first.requests).toHaveLength(1)
  })

  it('logs what check-config warns of, at its start and when it reloads', async () => {
    const sandbox = await startSandbox()
    const text = configText({ redis: redis.url, feed: sandbox.url, hook: 'http://127.0.0.1:9' })
    const path = writeConfig(text)
    const program = startProgram(['run', '--config', path], { NODE_TLS_REJECT_UNAUTHORIZED: '0' })
    await program.logged('started')
    const logged = (words: string) =>
      program.lines().filter(({ level, msg }) => level === 'warn' && String(msg).includes(words))
    expect(logged('NODE_TLS_REJECT_UNAUTHORIZED=0')).toHaveLength(1)
    expect(logged('no route names this sink')).toEqual([])
    writeFileSync(
      path,
      text.replace('sinks: {', 'sinks: { spare: { type: slack, url: "https://a.example/x" },'),
    )
    program.kill('SIGHUP')
    await program.logged('reloaded')
    expect(logged('sinks.spare: no route names this sink')).toHaveLength(1)
    expect(logged('NODE_TLS_REJECT_UNAUTHORIZED=0')).toHaveLength(2)
  })
})

describe('a mistake', () => {
  it('in the config is told with its line, on stderr, with exit code 1', async () => {
    const config = configText({ redis: redis.url, feed: 'ftp://nowhere', hook: 'http://127.0.0.1:9' })
    const program = startProgram(['run', '--config', writeConfig(config)])
    expect(await program.ended()).toBe(1)
    expect(program.stderr()).toMatch(/config\.yaml:\d+: sources\.main\.baseUrl/)
    expect(program.stdout()).toBe('')
  })

  // One of each exit code; the others end alike in the process of their test, test/cli/usage.test.ts.
  it.each([
    [['run', '--config', '/nowhere.yaml'], 1, /nowhere\.yaml/],
    [['runn'], 2, /run/],
  ])('on the command line %j ends with %d and one sentence', async (args, code, sentence) => {
    const program = startProgram(args)
    expect(await program.ended()).toBe(code)
    expect(program.stderr()).toMatch(sentence)
    expect(program.stderr()).not.toMatch(/\n\s+at /)
  })

  it('of the place: a port that is taken is named', async () => {
    const sandbox = await startSandbox()
    const { port } = new URL(sandbox.url)
    const text = configText({ redis: redis.url, feed: sandbox.url, hook: 'http://127.0.0.1:9' })
    const program = startProgram([
      'run',
      '--config',
      writeConfig(text.replace('127.0.0.1:0', `127.0.0.1:${port}`)),
    ])
    expect(await program.ended()).toBe(1)
    expect(program.stderr()).toContain('http.listen')
  })

  it('of Redis: one that may evict is refused, with the setting to change', async () => {
    const row = failureRow('It may evict keys (`maxmemory-policy`)')
    const evicting = await startRedis({ flags: ['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru'] })
    const [sandbox, hook] = [await startSandbox(), await startWebhookReceiver()]
    sandbox.fire()
    const config = writeConfig(configText({ redis: evicting.url, feed: sandbox.url, hook: hook.url }))
    const program = startProgram(['run', '--config', config])
    expect(await program.ended()).toBe(1)
    await row.kept(
      'everything stays in the feed: the bridge refuses to start, with the setting to change',
      () => {
        expect(program.stderr()).toMatch(/maxmemory-policy.*noeviction/)
        expect([sandbox.requests, hook.requests]).toEqual([[], []])
      },
    )
    await evicting.client().config('SET', 'maxmemory-policy', 'noeviction')
    const next = startProgram(['run', '--config', config])
    await row.heals('the first start after the setting is right', () => hook.received(1, 15_000))
    next.kill('SIGTERM')
    expect(await next.ended()).toBe(0)
    await row.twice('nothing', () => expect(hook.requests).toHaveLength(1))
    await evicting.dispose()
  })

  it('of dataDir: two bridges on one are refused', async () => {
    const folder = testFolder()
    const sandbox = await startSandbox()
    const text = configText({
      redis: 'embedded',
      feed: sandbox.url,
      hook: 'http://127.0.0.1:9',
      more: `dataDir: ${join(folder, 'd')}`,
    })
    const path = writeConfig(text, folder)
    const first = startProgram(['run', '--config', path])
    await first.logged('started')
    const second = startProgram(['run', '--config', path])
    expect(await second.ended()).toBe(1)
    expect(second.stderr()).toMatch(/dataDir|another/i)
    // A bridge that is killed leaves its Redis running, which the test would never end.
    first.kill('SIGTERM')
    expect(await first.ended()).toBe(0)
  })
})
