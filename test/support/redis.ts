import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'
import { findServer } from '../../src/store/connection/embedded-paths.ts'
import { countWaits } from './own-time.ts'

/** A real redis-server of our own, on a unix socket in a temporary directory. */
export interface RedisServer {
  readonly dir: string
  readonly socketPath: string
  /** `unix:///…/redis.sock`, as the config takes it. */
  readonly url: string
  readonly pid: number
  readonly running: boolean
  /** Starts it again on the same directory; with `aof` it finds its data. */
  start(): Promise<void>
  /** SIGTERM, and waits for its end. */
  stop(): Promise<void>
  /** SIGKILL, and waits for its end. */
  kill9(): Promise<void>
  /** Freezes and thaws it: connections stay, nothing answers. */
  freeze(): void
  thaw(): void
  /** A connection that closes with the server; rejects commands at once while the server is away. */
  client(): Redis
  /** Stops it and removes the directory. */
  dispose(): Promise<void>
}

interface RedisServerOptions {
  /**
   * Append-only file, so that a restart finds the data. `always`: what was answered is in the file when it is killed. Otherwise Redis puts off writing, by up to 2 s, while
   * the disk is busy with its last sync.
   */
  aof?: boolean | 'always'
  /** More flags, each pair as redis-server takes them; they win over those that this file gives. */
  flags?: readonly string[]
  /** Arguments before all flags: a config file in the server's directory. */
  first?: (dir: string) => readonly string[]
}

/** One server for the test file that calls this at its top level. */
export function useRedis(options: RedisServerOptions = {}): RedisServer {
  const server = createServer(options)
  beforeAll(() => server.start())
  afterAll(() => server.dispose())
  return server
}

/** One server for as long as the caller wants; `dispose` it. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = createServer(options)
  await server.start()
  return server
}

/** Kills the server and starts it again, until this client of it is connected to the new process. */
export async function replaceServer(server: RedisServer, client: Redis): Promise<void> {
  await server.kill9()
  await server.start()
  while (client.status !== 'ready') await new Promise((resolve) => client.once('ready', resolve))
}

/** A prefix that no other test uses, so that tests share a server without meeting. */
export function freshPrefix(): string {
  return `test-${randomBytes(6).toString('hex')}`
}

/** Whether something that speaks Redis answers at this socket. */
export function answersPing(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath)
    const finish = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(1_000, () => finish(false))
    socket.once('error', () => finish(false))
    socket.once('data', (data) => finish(/^(\+PONG|-NOAUTH)/.test(data.toString())))
    socket.write('PING\r\n')
  })
}

const startTimeoutMs = 10_000

function createServer(options: RedisServerOptions): RedisServer {
  const dir = mkdtempSync(join(tmpdir(), 'ab-redis-'))
  const socketPath = join(dir, 'redis.sock')
  const clients: Redis[] = []
  let child: ChildProcess | undefined

  const end = async (signal: NodeJS.Signals) => {
    const running = child
    child = undefined
    if (!running || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGCONT')
    running.kill(signal)
    await ended
  }
  // A test process that is torn down in the middle leaves no server behind.
  const reap = () => child?.kill('SIGKILL')
  process.on('exit', reap)

  return {
    dir,
    socketPath,
    url: `unix://${socketPath}`,
    get pid() {
      if (child?.pid === undefined) throw new Error('redis-server is not running')
      return child.pid
    },
    get running() {
      return child !== undefined
    },
    async start() {
      if (child?.exitCode === null && child.signalCode === null)
        throw new Error('this redis-server runs: another one here would never be stopped')
      child = spawn(findServer(), flagsOf(dir, socketPath, options), {
        stdio: 'ignore',
      })
      countWaits(child.pid)
      await untilAnswering(child, socketPath)
    },
    stop: () => end('SIGTERM'),
    kill9: () => end('SIGKILL'),
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    client() {
      const client = new Redis({
        path: socketPath,
        maxRetriesPerRequest: 1,
        retryStrategy: () => 50,
        commandTimeout: 10_000,
      })
      client.on('error', () => {})
      clients.push(client)
      return client
    },
    async dispose() {
      for (const client of clients) client.disconnect()
      await end('SIGTERM')
      process.off('exit', reap)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** The flags with which a server takes DEBUG: before version 7 it always does, and does not start with one that it does not know. */
export function debugFlags(): readonly string[] {
  return isBefore7() ? [] : ['--enable-debug-command', 'yes']
}

/** Whether the server that the tests start is a Redis before version 7. */
export function isBefore7(): boolean {
  const version = execFileSync(findServer(), ['--version'], { encoding: 'utf8' })
  return Number(/v=(\d+)/.exec(version)?.[1]) < 7
}

function flagsOf(dir: string, socketPath: string, options: RedisServerOptions): string[] {
  return [
    ...(options.first?.(dir) ?? []),
    ...['--port', '0'],
    ...['--unixsocket', socketPath],
    ...['--unixsocketperm', '700'],
    ...['--dir', dir],
    ...['--save', ''],
    ...['--appendonly', options.aof ? 'yes' : 'no'],
    ...['--appendfsync', options.aof === 'always' ? 'always' : 'everysec'],
    ...['--maxmemory-policy', 'noeviction'],
    ...['--daemonize', 'no'],
    ...(options.flags ?? []),
  ]
}

async function untilAnswering(child: ChildProcess, socketPath: string): Promise<void> {
  let failure: string | undefined
  child.once('error', (error) => {
    failure = error.message
  })
  child.once('exit', (code, signal) => {
    failure = `it ended with ${code ?? signal}`
  })
  const deadline = Date.now() + startTimeoutMs
  while (Date.now() < deadline) {
    if (failure !== undefined) break
    if (await answersPing(socketPath)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`redis-server did not start: ${failure ?? `no answer in ${startTimeoutMs} ms`}`)
}
