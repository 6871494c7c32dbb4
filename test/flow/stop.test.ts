import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseConfig } from '../../src/config/load.ts'
import { findServer } from '../../src/store/connection/embedded-paths.ts'
import { writeAppendOnlyFile } from '../support/append-only-file.ts'
import { failureRow } from '../support/failure-row.ts'
import { sentAgain } from '../support/oracle.ts'
import { type Program, startProgram, testFolder, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** How the process ends: it takes nothing new, waits for what it is sending, and nothing makes it hurry. */

const redis = useRedis()
const root = join(import.meta.dirname, '../..')
/** A busy machine takes its time to start a process. */
const startLimitMs = 20_000
const pollEveryMs = 2_000
const long = process.env['LONG'] === '1'

interface Parts {
  readonly redis: string
  readonly feed: string
  readonly hook: string
  /** Without it, as long as a sink has by itself. */
  readonly timeout: string | undefined
  readonly dataDir?: string
  readonly prefix?: string
}

function configText({ feed, hook, timeout, dataDir = '/x', ...parts }: Parts): string {
  return `
redis: { url: "${parts.redis}", prefix: ${parts.prefix ?? freshPrefix()} }
dataDir: ${dataDir}
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${feed}", token: sandbox-token, startFrom: beginning, poll: { every: ${pollEveryMs}ms }, budget: { unitsPerDay: 50000 } } }
sinks: { hook: { type: webhook, url: "${hook}", allowPrivateNetworks: true, concurrency: 1${timeout === undefined ? '' : `, timeout: ${timeout}`} } }
routes: [{ sinks: [hook] }]
`
}

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { passed: promise, open: resolve }
}

describe('a stop', () => {
  it('takes no further alert, waits for the send that runs, however often it is asked for, and leaves neither a second send nor a Redis behind', async () => {
    const row = failureRow('It is told to stop (`SIGTERM`, `SIGINT`)')
    const folder = testFolder()
    const sandbox = await startSandbox()
    const held = [gate(), gate()] as const
    const hook = await startWebhookReceiver({ answer: { status: 204, after: held[0].passed } })
    sandbox.fireMany(2)
    const dataDir = join(folder, 'data')
    const parts = { redis: 'embedded', feed: sandbox.url, hook: hook.url, dataDir, prefix: freshPrefix() }
    const config = writeConfig(configText({ ...parts, timeout: '5m' }), folder)
    const program = startProgram(['run', '--config', config])
    await hook.received(1, startLimitMs)
    const { pid } = await program.logged('embedded Redis started')
    program.kill('SIGTERM')
    await program.logged('stopping')
    const told = await program.logged('waiting for the sends that run')
    expect(told).toMatchObject({ sinks: ['hook'], sends: 1 })
    // Until it had read the signal it could still ask for a page.
    const polls = sandbox.requests.length
    // A reload of a config that would stop the send, and every signal that an operator or a terminal may add.
    writeFileSync(config, configText({ ...parts, timeout: '1s' }))
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) program.kill(signal)
    await until(
      'both are told',
      () => program.lines().filter(({ msg }) => String(msg).startsWith('stopping already')).length === 2,
    )
    await until('the reload is refused', () => program.lines().some(refused))
    sandbox.fire()
    await new Promise((resolve) => setTimeout(resolve, pollEveryMs + 200))
    held[0].open()
    const tookMs = [await endsIn(program)]
    expect(existsSync(`/proc/${pid}`)).toBe(false)
    await row.kept('it takes no new alert and no new page', () => {
      expect(hook.requests).toHaveLength(1)
      expect(sandbox.requests.length).toBe(polls)
    })

    // The third alert is held, by a sink with the timeout that it has by itself; the signal is that of a terminal.
    const first = hook.requests.length
    hook.answerWith(() =>
      hook.requests.length === first + 1 ? { status: 204 } : { status: 204, after: held[1].passed },
    )
    writeFileSync(config, configText({ ...parts, timeout: undefined }))
    const again = startProgram(['run', '--config', config])
    await hook.received(3, startLimitMs)
    again.kill('SIGINT')
    const toldAgain = await again.logged('waiting for the sends that run')
    held[1].open()
    tookMs.push(await endsIn(again))

    const ids = hook.requests.map(({ headers }) => headers['webhook-id'])
    await row.kept('everything', () => expect(new Set(ids)).toEqual(new Set(['main.1', 'main.2', 'main.3'])))
    await row.twice('nothing', () => expect(sentAgain(hook)).toEqual([]))
    // The least of all limits that it could wait for is 13.5 s.
    await row.heals('it ends with its last send', () => expect(Math.max(...tookMs)).toBeLessThan(6_000))
    await row.heals(
      "the log says how long that may take at most: the sink's `timeout` (10 s, up to 5 m), and 14 s",
      () => {
        expect([toldAgain['atMost'], told['atMost']]).toEqual(['23.5s', '5m 14s'])
        const longer = parseConfig(configText({ ...parts, timeout: '301s' }), { env: {}, folder })
        expect(longer).toMatchObject({ ok: false, mistakes: [{ path: 'sinks.hook.timeout' }] })
      },
    )
  }, 40_000)

  if (long)
    it.each([
      ['10 s, which it has by itself', undefined, 24_000],
      ['5 m, the longest', '5m', 314_000],
    ])(
      'ends also when a receiver never answers, within the timeout of its sink (%s), and 14 s',
      async (_what, timeout, limitMs) => {
        const sandbox = await startSandbox()
        const hook = await startWebhookReceiver({ answer: { kind: 'hang' } })
        sandbox.fire()
        const text = configText({ redis: redis.url, feed: sandbox.url, hook: hook.url, timeout })
        const program = startProgram(['run', '--config', writeConfig(text)])
        await hook.received(1, startLimitMs)
        program.kill('SIGTERM')
        expect(await program.ended(limitMs)).toBe(0)
      },
    )

  if (long)
    it('waits for a send of 25 seconds at the settings that a config has by itself', async () => {
      const sandbox = await startSandbox()
      const hook = await startWebhookReceiver({ answer: { status: 204, afterMs: 25_000 } })
      sandbox.fire()
      const text = configText({ redis: redis.url, feed: sandbox.url, hook: hook.url, timeout: '60s' })
      const config = writeConfig(text)
      const program = startProgram(['run', '--config', config])
      await hook.received(1, startLimitMs)
      program.kill('SIGTERM')
      expect(await program.ended(40_000)).toBe(0)
      expect(program.lines().filter(({ level }) => level === 'error')).toEqual([])
      const again = startProgram(['run', '--config', config])
      await again.logged('poll.done')
      sandbox.fire()
      await hook.received(2)
      expect(new Set(hook.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(2)
    })

  it('that comes while the embedded Redis still loads its file ends both at once', async () => {
    const folder = testFolder()
    const dataDir = join(folder, 'data')
    mkdirSync(dataDir)
    const commands = Array.from(
      { length: 1_000 },
      (_, n) => `*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n${100 + (n % 900)}\r\n`,
    )
    writeAppendOnlyFile(dataDir, commands.join(''))
    // A server that needs a minute for what it has to load.
    const server = join(folder, 'slow-redis')
    writeFileSync(server, `#!/bin/sh\nexec '${findServer()}' "$@" --key-load-delay 60000\n`, { mode: 0o755 })
    const nowhere = 'http://127.0.0.1:9'
    const text = configText({ redis: 'embedded', feed: nowhere, hook: nowhere, timeout: undefined, dataDir })
    const program = startProgram(['run', '--config', writeConfig(text, folder)], { REDIS_SERVER_BIN: server })
    // It listens a moment before it writes its number down.
    const pidFile = join(dataDir, 'redis.pid')
    const pidOf = () => (existsSync(pidFile) ? readFileSync(pidFile, 'utf8').trim() : '')
    await until('it loads', () => existsSync(join(dataDir, 'redis.sock')) && pidOf() !== '', startLimitMs)
    const pid = pidOf()
    program.kill('SIGTERM')
    expect(await program.ended()).toBe(0)
    expect(existsSync(`/proc/${pid}`)).toBe(false)
  }, 40_000)
})

it('the demo leaves nothing behind, however often it is interrupted', async () => {
  const program = startProgram(['--log-level', 'info', 'demo', '--rate', '1'])
  const { pid, dir } = await program.logged('embedded Redis started', startLimitMs)
  await until('it runs', () => program.stdout().includes('Status page'), startLimitMs)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) program.kill(signal)
  await program.ended(startLimitMs)
  expect(program.stdout()).toContain('fired')
  expect([existsSync(`/proc/${pid}`), existsSync(String(dir))]).toEqual([false, false])
}, 60_000)

describe('through npm', () => {
  it.each<[string, NodeJS.Signals, 'npm' | 'group']>([
    ['SIGTERM to npm alone', 'SIGTERM', 'npm'],
    ['Ctrl-C at a terminal, which npm passes on once more', 'SIGINT', 'group'],
  ])(
    '%s ends the bridge itself, after its last send',
    async (_what, signal, to) => {
      const sandbox = await startSandbox()
      const held = gate()
      const hook = await startWebhookReceiver({ answer: { status: 204, after: held.passed } })
      sandbox.fire()
      const text = configText({ redis: redis.url, feed: sandbox.url, hook: hook.url, timeout: '20s' })
      const npm = spawn('npm', ['run', '-s', 'cli', '--', 'run', '--config', writeConfig(text)], {
        cwd: root,
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => {
        try {
          process.kill(-(npm.pid ?? 0), 'SIGKILL')
        } catch {
          // All of them have ended, as they should.
        }
      })
      let out = ''
      npm.stdout.on('data', (chunk: Buffer) => {
        out += chunk
      })
      const closed = new Promise((resolve) => npm.stdout.once('close', resolve))
      const exited = new Promise((resolve) => npm.once('exit', (code, by) => resolve(code ?? by)))
      await hook.received(1, startLimitMs)
      process.kill(to === 'group' ? -(npm.pid ?? 0) : (npm.pid ?? 0), signal)
      await until('the bridge has it', () => out.includes('"waiting for the sends that run"'))
      held.open()
      await Promise.all([closed, exited])
      expect(out).toContain('"stopped"')
      expect(hook.requests).toHaveLength(1)
    },
    40_000,
  )

  it('every script gives its process to the program that it runs', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    for (const script of Object.values(scripts)) expect(script).toMatch(/^\. \.\/setup\.sh && exec /)
  })
})

/** How long it takes to end from now on, in milliseconds; with the exit code of a stop that went well. */
async function endsIn(program: Program): Promise<number> {
  const startMs = performance.now()
  expect(await program.ended()).toBe(0)
  return performance.now() - startMs
}

function refused({ msg, mistakes }: Record<string, unknown>): boolean {
  return msg === 'reload.refused' && String(mistakes) === 'the bridge is stopping'
}
