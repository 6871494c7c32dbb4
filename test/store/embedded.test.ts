import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { type EmbeddedRedis, startEmbeddedRedis } from '../../src/store/connection/embedded.ts'
import { embeddedPaths, findServer, lockDir } from '../../src/store/connection/embedded-paths.ts'
import { listenForLeave } from '../../src/store/connection/leave.ts'
import { parseAddress } from '../../src/store/connection/redis-options.ts'
import { writeAppendOnlyFile } from '../support/append-only-file.ts'
import { wallClock } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { answersPing } from '../support/redis.ts'

const soon = { timeout: 10_000, interval: 20 }
const dayMs = 86_400_000

describe('the embedded Redis', () => {
  it('keeps what it was given over a restart of the bridge', async () => {
    const dataDir = tempDir()
    const first = await start(dataDir)
    await client(first).set('key', 'value')
    await first.stop()
    const second = await start(dataDir)
    expect(await client(second).get('key')).toBe('value')
  })

  it('is for its user alone, throws nothing away and writes an append-only file', async () => {
    const redis = client(await start(tempDir()))
    const settings = async (name: string) => ((await redis.config('GET', name)) as string[])[1]
    expect(await settings('port')).toBe('0')
    expect(await settings('unixsocketperm')).toBe('700')
    expect(await settings('maxmemory-policy')).toBe('noeviction')
    expect(await settings('appendonly')).toBe('yes')
    expect(await settings('appendfsync')).toBe('everysec')
  })

  it('ends with the bridge and leaves no socket', async () => {
    const embedded = await start(tempDir())
    await embedded.stop()
    expect(await answersPing(embedded.socketPath)).toBe(false)
    expect(existsSync(embedded.socketPath)).toBe(false)
  })

  it('is started again when it dies, on the same socket and with its data', async () => {
    const { log, with: told } = captureLog()
    const embedded = await start(tempDir(), log)
    const redis = client(embedded)
    await redis.set('key', 'value')
    process.kill(await pidOf(redis), 'SIGKILL')
    await vi.waitFor(async () => expect(await redis.get('key')).toBe('value'), soon)
    expect(told('embedded Redis died; starting it again')).toHaveLength(1)
    await vi.waitFor(() => expect(told('embedded Redis is back')).toHaveLength(1), soon)
  })

  it('takes no server for running that was killed, and whose parent does not ask for its end', async () => {
    const dir = tempDir()
    const { pidFile, socketPath } = embeddedPaths(dir)
    const flags = `--port 0 --unixsocket ${socketPath} --dir ${dir} --pidfile ${pidFile}`
    const parent = spawn('sh', ['-c', `${findServer()} ${flags} & exec sleep 60`], { stdio: 'ignore' })
    onTestFinished(() => void parent.kill('SIGKILL'))
    await vi.waitFor(async () => expect(await answersPing(socketPath)).toBe(true), soon)
    process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL')
    await vi.waitFor(async () => expect(await answersPing(socketPath)).toBe(false), soon)
    expect(await client(await start(dir)).ping()).toBe('PONG')
  })

  it.each([-dayMs, dayMs])(
    'starts and starts again while the wall clock is set by %d ms again and again',
    async (byMs) => {
      const clock = wallClock()
      const now = () => {
        clock.turn(byMs)
        return clock.now()
      }
      const { log, with: told } = captureLog()
      const dataDir = tempDir()
      const redis = client(await start(dataDir, log, { ...clock, now }))
      process.kill(await pidOf(redis), 'SIGKILL')
      await vi.waitFor(() => expect(told('embedded Redis is back')).toHaveLength(1), soon)
    },
  )

  it('refuses a second bridge on the same directory in one sentence', async () => {
    const dataDir = tempDir()
    const first = await start(dataDir)
    await expect(start(dataDir)).rejects.toThrow(/another alert-bridge is running on .*dataDir of its own$/)
    await first.stop()
    await start(dataDir)
  })

  it.each([false, true])('waits for a command that starts (its server answers: %s)', async (answers) => {
    const dataDir = tempDir()
    const command = answers ? await start(dataDir) : undefined
    const unlock = answers ? () => {} : await lockDir(embeddedPaths(dataDir).dir)
    const waits = Promise.withResolvers<void>()
    const clock = {
      ...systemClock,
      sleep(ms: number, signal?: AbortSignal) {
        waits.resolve()
        return systemClock.sleep(ms, signal)
      },
    }
    const bridge = startEmbeddedRedis({ dataDir, log: captureLog().log, clock, asksToLeave: true })
    onTestFinished(async () => (await bridge).stop())
    await Promise.race([waits.promise, bridge])
    const left = Promise.withResolvers<void>()
    if (command) {
      await listenForLeave(command.socketPath, () => left.resolve())
      await left.promise
      await command.stop()
    }
    unlock()
    expect(await answersPing((await bridge).socketPath)).toBe(true)
  })

  it('takes over from a bridge that was killed, with its data', async () => {
    const dataDir = tempDir()
    const bridge = spawn(process.execPath, ['--input-type=module', '-e', killedBridge(dataDir)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const socketPath = await firstLine(bridge)
    const left = new Redis({ path: socketPath })
    left.on('error', () => {})
    await left.set('key', 'value')
    const pid = await pidOf(left)
    bridge.kill('SIGKILL')
    await once(bridge, 'exit')
    expect(await answersPing(socketPath)).toBe(true)

    const { log, with: told } = captureLog()
    const redis = client(await start(dataDir, log))
    left.disconnect()
    expect(await redis.get('key')).toBe('value')
    expect(await pidOf(redis)).not.toBe(pid)
    expect(told('the Redis of a bridge that was killed is still running; asking it to end')).toHaveLength(1)
  })

  it('does not start beside an old server that does not answer: two would spoil the file', async () => {
    const dataDir = tempDir()
    const embedded = await start(dataDir)
    await embedded.stop()
    const elsewhere = join(tempDir(), 'other.sock')
    const silent = spawn(findServer(), ['--port', '0', '--unixsocket', elsewhere, '--dir', dataDir])
    onTestFinished(() => void silent.kill('SIGKILL'))
    await vi.waitFor(async () => expect(await answersPing(elsewhere)).toBe(true), soon)
    writeFileSync(join(dataDir, 'redis.pid'), `${silent.pid}\n`)
    await expect(start(dataDir)).rejects.toThrow(
      `a redis-server (pid ${silent.pid}) on ${dataDir} is running`,
    )
  })

  it('is not confused by a socket and a pid that a crash left behind', async () => {
    const dataDir = tempDir()
    const { socketPath } = embeddedPaths(dataDir)
    writeFileSync(socketPath, '')
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)', '/srv/redis/main.ts'])
    onTestFinished(() => void other.kill('SIGKILL'))
    writeFileSync(join(dataDir, 'redis.pid'), `${other.pid}\n`)
    expect(await client(await start(dataDir)).ping()).toBe('PONG')
  })

  it('starts beside a program that only got the number of the old server, whatever its command line holds', async () => {
    const dataDir = tempDir()
    for (const cwd of [tempDir(), dataDir]) {
      const other = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)', 'redis-server'], { cwd })
      onTestFinished(() => void other.kill('SIGKILL'))
      writeFileSync(join(dataDir, 'redis.pid'), `${other.pid}\n`)
      const embedded = await start(dataDir)
      await embedded.stop()
    }
    const elsewhere = tempDir()
    const server = spawn(findServer(), [
      '--port',
      '0',
      '--unixsocket',
      join(elsewhere, 'other.sock'),
      '--dir',
      elsewhere,
    ])
    onTestFinished(() => void server.kill('SIGKILL'))
    await vi.waitFor(async () => expect(await answersPing(join(elsewhere, 'other.sock'))).toBe(true), soon)
    writeFileSync(join(dataDir, 'redis.pid'), `${server.pid}\n`)
    expect(await client(await start(dataDir)).ping()).toBe('PONG')
  })

  it('is reached whatever its path holds', async () => {
    const embedded = await start(join(tempDir(), 'a#b?c=%41 d'))
    expect(parseAddress(embedded.url)).toEqual({ path: embedded.socketPath })
    expect(await client(embedded).ping()).toBe('PONG')
  })

  it('says what the server said when it cannot start', async () => {
    const dataDir = tempDir()
    const written = writeAppendOnlyFile(dataDir, 'nonsense\n')
    await expect(start(dataDir)).rejects.toThrow(
      /the embedded Redis did not start: ended with code 1; it said: .*AOF/i,
    )
    rmSync(written, { recursive: true })
    await start(dataDir)
  })
})

describe('its place', () => {
  it('has a socket near the data, or a short one elsewhere when the path is too long for a socket', () => {
    const dir = tempDir()
    expect(embeddedPaths(dir).socketPath).toBe(join(dir, 'redis.sock'))
    const deep = join(dir, 'd'.repeat(100))
    const far = embeddedPaths(deep, dir)
    expect(far.socketPath.length).toBeLessThan(104)
    expect(far.dir).toBe(deep)
    expect(embeddedPaths(deep, dir)).toEqual(far)
    expect(embeddedPaths(`${deep}2`, dir).socketPath).not.toBe(far.socketPath)
  })

  it('is not a directory that somebody else may read', () => {
    const dir = tempDir()
    const deep = join(dir, 'd'.repeat(100))
    const { socketPath } = embeddedPaths(deep, dir)
    const socketDir = join(socketPath, '..')
    rmSync(socketDir, { recursive: true })
    mkdirSync(socketDir, { mode: 0o755 })
    expect(() => embeddedPaths(deep, dir)).toThrow(/not a directory of this user alone/)
  })

  it('must be a directory', () => {
    const file = join(tempDir(), 'file')
    writeFileSync(file, '')
    for (const dir of [file, join(file, 'below')])
      expect(() => embeddedPaths(dir)).toThrow(`dataDir ${dir} cannot be written to`)
  })

  it('is named with the one for its socket where that cannot be made', () => {
    const file = join(tempDir(), 'file')
    writeFileSync(file, '')
    const deep = join(tempDir(), 'd'.repeat(120))
    expect(() => embeddedPaths(deep, file)).toThrow(
      new RegExp(`^${file}/alert-bridge-[0-9a-f]+, for the socket of dataDir ${deep}, cannot be written to$`),
    )
  })

  it('is locked without a word on stderr, and later warnings are printed', () => {
    const module = new URL('../../src/store/connection/embedded-paths.ts', import.meta.url).href
    const code = `
      import { lockDir } from ${JSON.stringify(module)}
      await lockDir(${JSON.stringify(tempDir())})
      process.emitWarning('a later one')`
    const locked = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
    expect(locked.status).toBe(0)
    expect(locked.stderr.trim().split('\n')[0]).toMatch(/^\(node:\d+\) Warning: a later one$/)
  })

  it('is made with all that is above it, and refused at once where nothing can be made', () => {
    const deep = join(tempDir(), 'a', 'b', 'c')
    expect(embeddedPaths(deep).dir).toBe(deep)
    expect(statSync(join(deep, '..')).mode & 0o777).toBe(0o700)
    // In a process of its own, which can be ended: mkdir may go round in circles there.
    const module = new URL('../../src/store/connection/embedded-paths.ts', import.meta.url).href
    const code = `import { embeddedPaths } from ${JSON.stringify(module)}; embeddedPaths('/proc/alert-bridge/data')`
    const tried = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      timeout: 10_000,
      encoding: 'utf8',
    })
    expect(tried).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('dataDir /proc/alert-bridge/data cannot be written to'),
    })
  })
})

describe('its program', () => {
  it('is the named one, else the first of redis-server and valkey-server in PATH', () => {
    const dir = tempDir()
    writeFileSync(join(dir, 'valkey-server'), '', { mode: 0o755 })
    writeFileSync(join(dir, 'not-a-program'), '')
    expect(findServer({ PATH: `/nowhere:${dir}` })).toBe(join(dir, 'valkey-server'))
    writeFileSync(join(dir, 'redis-server'), '', { mode: 0o755 })
    expect(findServer({ PATH: dir })).toBe(join(dir, 'redis-server'))
    const named = join(dir, 'valkey-server')
    expect(findServer({ PATH: '', REDIS_SERVER_BIN: named })).toBe(named)
    expect(() => findServer({ PATH: dir, REDIS_SERVER_BIN: join(dir, 'not-a-program') })).toThrow(
      /REDIS_SERVER_BIN/,
    )
  })

  it('is found where its path is relative, though it runs in its data directory', async () => {
    const named = relative('.', findServer())
    for (const env of [{ REDIS_SERVER_BIN: named }, { PATH: dirname(named) }]) {
      const options = {
        dataDir: join(tempDir(), 'as/deep/as/the/checkout'),
        log: captureLog().log,
        binary: findServer(env),
      }
      const embedded = await startEmbeddedRedis(options)
      await embedded.stop()
    }
  })

  it('is asked for in one sentence when there is none', () => {
    expect(() => findServer({ PATH: '/nowhere' })).toThrow(
      /no redis-server or valkey-server in PATH: install one \(apt-get install redis-server, brew install redis\)/,
    )
  })
})

function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'ab-embedded-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

async function start(dataDir: string, log = captureLog().log, clock = systemClock): Promise<EmbeddedRedis> {
  const embedded = await startEmbeddedRedis({ dataDir, log, clock })
  onTestFinished(() => embedded.stop())
  return embedded
}

function client(embedded: EmbeddedRedis): Redis {
  const redis = new Redis({ path: embedded.socketPath, retryStrategy: () => 50 })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

async function pidOf(redis: Redis): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1])
}

function killedBridge(dataDir: string): string {
  const module = new URL('../../src/store/connection/embedded.ts', import.meta.url).href
  return `
    const { startEmbeddedRedis } = await import(${JSON.stringify(module)})
    const silent = { info() {}, warn() {}, error() {}, debug() {} }
    const { socketPath } = await startEmbeddedRedis({ dataDir: ${JSON.stringify(dataDir)}, log: silent })
    process.stdout.write(socketPath + '\\n')`
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`it ended with ${code}`)))
    child.stdout?.once('data', (data) => resolve(String(data).trim()))
  })
}
