import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { createConnection } from 'node:net'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { formatDuration } from '../../lib/duration.ts'
import { toError, UserError } from '../../lib/errors.ts'
import type { Logger } from '../../telemetry/log.ts'
import { type EmbeddedPaths, embeddedPaths, findServer, socketUrl } from './embedded-paths.ts'
import { lockPlace } from './leave.ts'
import { runningPid } from './running-server.ts'

/**
 * A redis-server of our own in `dataDir`: unix socket only, append-only file, no eviction.
 *
 * One bridge a `dataDir` (a kernel lock); a second one is refused. Under that lock, a server that answers at our socket
 * was started by a bridge that was killed: it gets SHUTDOWN over that socket, which flushes its file, and a new one is
 * started. It is not reused, because a server that is not our child process can be neither watched nor stopped safely. A
 * server that ends unexpectedly is started again; connections find it at the same path.
 */
export interface EmbeddedRedis {
  readonly socketPath: string
  /** `unix://…`, as `connectRedis` takes it. */
  readonly url: string
  /** Flushes the file and ends the server, within a limit. */
  stop(): Promise<void>
}

interface EmbeddedOptions {
  readonly dataDir: string
  readonly log: Logger
  readonly clock?: Clock
  /** A bridge asks an `api` command that holds the directory to end, and waits for that. */
  readonly asksToLeave?: boolean
  /** Ends the start: a large append-only file takes minutes to load. */
  readonly signal?: AbortSignal | undefined
}

/** Throws a UserError when there is no server program, or the directory is not ours to use. */
export async function startEmbeddedRedis(options: EmbeddedOptions): Promise<EmbeddedRedis> {
  const { log, clock = systemClock } = options
  const binary = findServer()
  const place = embeddedPaths(options.dataDir)
  const unlock = await lockPlace(place, clock, options)
  try {
    await endLeftover(place, log, clock)
    const keeper = new Supervisor({ binary, place, log, clock, unlock })
    await keeper.start(options.signal)
    return {
      socketPath: place.socketPath,
      url: socketUrl(place),
      stop: () => keeper.stop(),
    }
  } catch (error) {
    unlock()
    throw error
  }
}

/** A program that does not even open its socket in this time will not. */
const openTimeoutMs = 15_000
/** A large append-only file takes its time to load. */
const loadTimeoutMs = 10 * 60_000
const stopTimeoutMs = 20_000
const restartDelayMsMax = 10_000
/** A server that ran this long had no trouble starting: the next pause is short again. */
const steadyMs = 60_000
const askEveryMs = 25
/** Between the end of a killed server's socket and its own. */
const dyingMsMax = 2_000
const linesKept = 10

interface SupervisorOptions {
  readonly binary: string
  readonly place: EmbeddedPaths
  readonly log: Logger
  readonly clock: Clock
  readonly unlock: () => void
}

/** Starts the server, and again whenever it ends before `stop`. Keeps the lock until then. */
class Supervisor {
  readonly #options: SupervisorOptions
  readonly #stopping = new AbortController()
  #child: ChildProcess | undefined
  #watch: Promise<void> = Promise.resolve()

  constructor(kept: SupervisorOptions) {
    this.#options = kept
  }

  async start(signal: AbortSignal | undefined): Promise<void> {
    await this.#launch(signal)
    this.#options.log.info({ dir: this.#options.place.dir, pid: this.#child?.pid }, 'embedded Redis started')
    this.#watch = this.#keepAlive()
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopping'))
    await end(this.#child, this.#options.log)
    await this.#watch
    // It may have been started again while the first was ending.
    await end(this.#child, this.#options.log)
    this.#options.unlock()
  }

  async #keepAlive(): Promise<void> {
    const { signal } = this.#stopping
    let delayMs = 0
    while (!signal.aborted) {
      const startedMs = this.#options.clock.monotonicMs()
      const how = this.#child && (await ending(this.#child))
      if (signal.aborted) return
      if (this.#options.clock.monotonicMs() - startedMs > steadyMs) delayMs = 0
      this.#options.log.error(
        { how, again: formatDuration(delayMs) },
        'embedded Redis died; starting it again',
      )
      try {
        await this.#options.clock.sleep(delayMs, signal)
        delayMs = Math.min(Math.max(250, delayMs * 2), restartDelayMsMax)
        await this.#launch(signal)
        this.#options.log.info({ pid: this.#child?.pid }, 'embedded Redis is back')
      } catch (error) {
        if (!signal.aborted)
          this.#options.log.error({ reason: toError(error).message }, 'embedded Redis did not start')
      }
    }
  }

  async #launch(signal: AbortSignal | undefined): Promise<void> {
    const child = spawn(this.#options.binary, flags(this.#options.place), {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.#options.place.dir,
      // A Ctrl-C at the terminal must not end it before the bridge has drained.
      detached: true,
    })
    this.#child = child
    const said = remember(child, this.#options.log)
    try {
      await untilReady(child, this.#options.place.socketPath, this.#options.clock, signal)
    } catch (error) {
      child.kill('SIGKILL')
      await ending(child)
      const words = said().join(' | ')
      throw new UserError(
        `the embedded Redis did not start: ${toError(error).message}${words && `; it said: ${words}`}`,
      )
    }
  }
}

function flags({ dir, socketPath, pidFile }: EmbeddedPaths): string[] {
  return [
    ...['--port', '0', '--unixsocket', socketPath, '--unixsocketperm', '700'],
    ...['--dir', dir, '--pidfile', pidFile, '--daemonize', 'no', '--logfile', ''],
    // When the machine fails, at most the last second is lost; when only the process ends, nothing.
    ...['--appendonly', 'yes', '--appendfsync', 'everysec', '--aof-load-truncated', 'yes', '--save', ''],
    ...['--maxmemory', '0', '--maxmemory-policy', 'noeviction'],
  ]
}

async function endLeftover(place: EmbeddedPaths, log: Logger, clock: Clock): Promise<void> {
  if ((await ask(place.socketPath)) === 'nothing') return refuseSilentServer(place, clock)
  const redis = new Redis({
    path: place.socketPath,
    retryStrategy: null,
    lazyConnect: true,
    commandTimeout: 5_000,
  })
  redis.on('error', () => {})
  try {
    await redis.connect()
    const [, dir = ''] = (await redis.config('GET', 'dir')) as string[]
    if (realpathSync(dir) !== realpathSync(place.dir)) {
      throw new UserError(`the Redis at ${place.socketPath} keeps its data in ${dir}; it is not the bridge's`)
    }
    log.warn({ dir }, 'the Redis of a bridge that was killed is still running; asking it to end')
    await redis.shutdown().catch(() => {})
  } finally {
    redis.disconnect()
  }
  const deadlineMs = clock.monotonicMs() + stopTimeoutMs
  while ((await ask(place.socketPath)) !== 'nothing' || runningPid(place) !== undefined) {
    if (clock.monotonicMs() > deadlineMs) {
      throw new UserError(
        `the old redis-server on ${place.dir} (pid ${runningPid(place)}) does not end; stop it`,
      )
    }
    await clock.sleep(askEveryMs)
  }
}

/**
 * Two servers would damage their append-only file: one that runs without answering stops the start. A server that was
 * killed a moment ago has closed its socket, but not ended yet.
 */
async function refuseSilentServer(place: EmbeddedPaths, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + dyingMsMax
  let pid = runningPid(place)
  while (pid !== undefined && clock.monotonicMs() < deadlineMs) {
    await clock.sleep(askEveryMs)
    pid = runningPid(place)
  }
  if (pid === undefined) return
  throw new UserError(
    `a redis-server (pid ${pid}) on ${place.dir} is running but does not answer; stop it first, or remove ${place.pidFile} if that is another program`,
  )
}

async function untilReady(
  child: ChildProcess,
  socketPath: string,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<void> {
  const startMs = clock.monotonicMs()
  const ended = ending(child)
  for (;;) {
    signal?.throwIfAborted()
    const answer = await ask(socketPath)
    if (answer === 'pong') return
    const waitedMs = clock.monotonicMs() - startMs
    if (waitedMs > (answer === 'loading' ? loadTimeoutMs : openTimeoutMs)) {
      throw new Error(`no answer in ${formatDuration(waitedMs)}`)
    }
    const how = await Promise.race([ended, clock.sleep(askEveryMs)])
    if (how !== undefined) throw new Error(how)
  }
}

/** One PING by hand: no connection that would try again, no error that needs catching elsewhere. */
function ask(socketPath: string): Promise<'pong' | 'loading' | 'nothing'> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath)
    const finish = (answer: 'pong' | 'loading' | 'nothing') => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(1_000, () => finish('nothing'))
    socket.once('error', () => finish('nothing'))
    socket.once('close', () => finish('nothing'))
    // Any other answer comes from a server too, one that is not ready.
    socket.once('data', (data) => finish(data.toString().startsWith('+PONG') ? 'pong' : 'loading'))
    socket.write('PING\r\n')
  })
}

/** Resolves with how it ended; at once when it has. */
async function ending(child: ChildProcess): Promise<string> {
  if (child.pid === undefined) return 'it could not be run'
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.signalCode ? `ended by ${child.signalCode}` : `ended with code ${child.exitCode}`
}

async function end(child: ChildProcess | undefined, log: Logger): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  // SIGTERM is SHUTDOWN: the append-only file is flushed and synced before the end.
  child.kill('SIGTERM')
  const timer = setTimeout(() => {
    log.error({ limit: formatDuration(stopTimeoutMs) }, 'embedded Redis does not end; killing it')
    child.kill('SIGKILL')
  }, stopTimeoutMs)
  await ending(child)
  clearTimeout(timer)
}

/** Keeps the last lines of what the server prints, for the error that a failed start becomes. */
function remember(child: ChildProcess, log: Logger): () => string[] {
  const lines: string[] = []
  child.once('error', (error) => lines.push(error.message))
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue
    createInterface({ input: stream }).on('line', (line) => {
      log.debug({ line }, 'redis-server')
      // Its warnings have a `#`; the rest is a banner.
      if (/ # |FATAL|rror/.test(line)) lines.push(line.trim())
      lines.splice(0, lines.length - linesKept)
    })
  }
  return () => lines
}
