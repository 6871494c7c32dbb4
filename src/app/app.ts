import { buildAdmin } from '../admin/admin.ts'
import type { ReloadResult } from '../admin/ports.ts'
import type { LoadedConfig } from '../config/load.ts'
import { formatMistake } from '../config/mistake.ts'
import type { Config } from '../config/schema.ts'
import { dropLocks } from '../delivery/queues.ts'
import type { Tuning } from '../delivery/settings.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { toError, UserError } from '../lib/errors.ts'
import { dropLeases } from '../store/lease.ts'
import { redisErrorText } from '../store/redis.ts'
import type { Logger, LogLevel } from '../telemetry/log.ts'
import { createMetrics, initialiseMetrics, type Metrics } from '../telemetry/metrics.ts'
import { version } from '../telemetry/version.ts'
import { differing, fixedParts } from './fixed-parts.ts'
import { adminPorts } from './operator-api/ports.ts'
import { admitRedis, openRedis, type RedisPair } from './redis.ts'
import { createRedisWatch, type RedisWatch } from './redis-watch.ts'
import type { Role } from './roles.ts'
import { createRuntime, type Runtime } from './runtime.ts'
import { buildSinks } from './sinks.ts'
import { Teardown } from './teardown.ts'
import type { RuntimeTools } from './tools.ts'

/**
 * The whole bridge, built from a checked config. The HTTP server comes first and goes last, so that probes are answered
 * while Redis is waited for and while sends drain. A reload changes everything that the config says, except the server's
 * address, the connection to Redis and the data directory; what is built is built before the old one stops.
 */
export interface App {
  /**
   * Resolves to the address of the HTTP server once the bridge runs, which needs Redis to answer; to an empty text where a
   * stop comes first. Rejects with what makes going on senseless.
   */
  start(): Promise<string>
  /** Drains: no new poll, every running send has its sink's own time to finish, the rest stays queued. Idempotent. */
  stop(): Promise<void>
  /** Resolves once the config that is on disk now is in force, or with why it is not; what went ends in its own time. */
  reload(): Promise<ReloadResult>
  /** Resolves (never rejects) with what makes going on senseless. */
  readonly failed: Promise<Error>
  readonly metrics: Metrics
}

export interface AppOptions {
  readonly log: Logger
  readonly role?: Role
  readonly clock?: Clock
  /** Reads the config again; without it there is no reload. */
  readonly load?: () => LoadedConfig
  /** Takes the log level of a config that was reloaded. */
  readonly setLogLevel?: (level: LogLevel) => void
  /** How often Redis' settings are looked at, in milliseconds. */
  readonly redisCheckEveryMs?: number
  /** How often sinks and sources are looked at for what operators are told, in milliseconds. */
  readonly operatorsLookEveryMs?: number
  readonly senderTuning?: Partial<Tuning>
}

const stopStepTimeoutMs = 25_000
/** Beyond what the parts of a runtime give themselves. */
const runtimeSlackMs = 5_000

export function createApp(config: Config, options: AppOptions): App {
  return new Bridge(config, options)
}

class Bridge implements App {
  readonly failed: Promise<Error>
  readonly metrics: Metrics
  readonly #options: Required<Pick<AppOptions, 'log' | 'role' | 'clock'>> & AppOptions
  readonly #teardown: Teardown
  readonly #stopping = new AbortController()
  readonly #startedAtMs: number
  readonly #processStates: RuntimeTools['processStates'] = new Map()
  readonly #fail: (error: Error) => void
  /** As they were when they were used: a secret in a file may have changed since. */
  #fixed: ReadonlyMap<string, string>
  #config: Config
  #redis: RedisPair | undefined
  #redisWatch: RedisWatch | undefined
  #runtime: Runtime | undefined
  #starting: Promise<string> | undefined
  #stopped: Promise<void> | undefined

  constructor(config: Config, options: AppOptions) {
    const { log, role = 'all', clock = systemClock } = options
    this.#config = config
    this.#options = { ...options, log, role, clock }
    this.#teardown = new Teardown(log)
    this.#startedAtMs = clock.now()
    this.metrics = createMetrics({ version, node: process.version })
    initialiseMetrics(this.metrics, namesOf(config))
    this.metrics.configReloadSuccessful.set(1)
    this.metrics.configReloaded.set(clock.now() / 1_000)
    this.#fixed = fixedParts(config)
    const failure = Promise.withResolvers<Error>()
    this.failed = failure.promise
    this.#fail = failure.resolve
  }

  start(): Promise<string> {
    this.#starting ??= this.#start()
    return this.#starting
  }

  async #start(): Promise<string> {
    const { log, role } = this.#options
    const signal = this.#stopping.signal
    try {
      const address = await this.#listen()
      log.info({ version, role, address }, 'listening')
      this.#fixed = fixedParts(this.#config)
      this.#redis = await openRedis(this.#config.redis, this.#config.dataDir, {
        log,
        teardown: this.#teardown,
        signal,
      })
      await admitRedis(this.#redis.commands, { prefix: this.#config.redis.prefix, log, signal })
      if (this.#config.redis.mode === 'embedded') await this.#inherit(this.#redis)
      this.#watch(this.#redis)
      const runtime = this.#createRuntime(this.#config, this.#redis)
      this.#runtime = runtime
      this.#teardown.push(
        'runtime',
        () => runtime.stop(),
        () => runtime.stopMsMax() + runtimeSlackMs,
      )
      runtime.start()
      log.info(namesOf(this.#config), 'started')
      return address
    } catch (thrown) {
      // A stop that comes before the start is done is no failure.
      if (signal.aborted) return ''
      const error = toError(thrown)
      this.#fail(error)
      throw error
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async reload(): Promise<ReloadResult> {
    const result = this.#reload()
    this.metrics.configReloadSuccessful.set(result.ok ? 1 : 0)
    return result
  }

  #reload(): ReloadResult {
    const { load, log } = this.#options
    if (!load) return refused('this bridge was started without a config file')
    if (this.#stopping.signal.aborted) return refused('the bridge is stopping')
    const loaded = load()
    if (!loaded.ok)
      return { ok: false, mistakes: loaded.mistakes.map((each) => formatMistake('config', each)) }
    const fixed = differing(this.#fixed, fixedParts(loaded.config))
    if (fixed.length > 0)
      return refused(`a change of ${fixed.join(', ')} needs a restart; nothing of the new config is in force`)
    for (const warning of loaded.warnings) log.warn(formatMistake('config', warning))
    try {
      return this.#change(loaded.config)
    } catch (thrown) {
      if (thrown instanceof UserError) return refused(thrown.message)
      log.error({ err: toError(thrown) }, 'reload.failed')
      return refused(`a fault of the bridge: ${toError(thrown).name}; the log says more`)
    }
  }

  /** At one stroke: nobody waits in here, so two reloads never meet, and the last one wins. */
  #change(config: Config): ReloadResult {
    const { log, clock, setLogLevel } = this.#options
    const runtime = this.#runtime
    // Before the start is done the config is only kept, once it is known that its sinks can be built.
    const change = runtime ? runtime.reload(config) : void buildSinks(config)
    initialiseMetrics(this.metrics, namesOf(config))
    this.#config = config
    this.metrics.configReloaded.set(clock.now() / 1_000)
    setLogLevel?.(config.log.level)
    const { settled, ...changes } = change ?? {}
    log.info({ ...namesOf(config), changes }, 'reloaded')
    void settled?.then(() => log.debug('nothing works by the old config any more'))
    return { ok: true }
  }

  async #stop(): Promise<void> {
    this.#stopping.abort(new Error('stopping'))
    // What is half started is stopped once it stands: the wait for Redis ends with the signal, all else has limits.
    await Promise.allSettled([this.#starting])
    await this.#teardown.run(stopStepTimeoutMs)
    this.#options.log.info('stopped')
  }

  /**
   * The embedded Redis has one process at a time, since the data directory is locked: what the last one left when it was
   * killed need not run out first.
   */
  async #inherit({ commands }: RedisPair): Promise<void> {
    const { prefix } = this.#config.redis
    const { sources, sinks } = namesOf(this.#config)
    try {
      await dropLeases(commands, prefix, sources)
      await dropLocks(commands, prefix, sinks)
    } catch (thrown) {
      this.#options.log.debug(
        { reason: redisErrorText(thrown) },
        'what the last process left runs out by itself',
      )
    }
  }

  #watch({ commands }: RedisPair): void {
    const { log, clock, redisCheckEveryMs: everyMs } = this.#options
    const { prefix } = this.#config.redis
    const watch = createRedisWatch({ redis: commands, prefix, log, clock, ...(everyMs ? { everyMs } : {}) })
    this.#redisWatch = watch
    const running = watch.run(this.#stopping.signal)
    this.#teardown.push('redis watch', () => running)
  }

  #createRuntime(config: Config, redis: RedisPair): Runtime {
    const { log, role, clock, operatorsLookEveryMs, senderTuning } = this.#options
    const tools = { redis, log, role, clock, metrics: this.metrics, processStates: this.#processStates }
    return createRuntime(config, {
      ...tools,
      ...(operatorsLookEveryMs ? { operatorsLookEveryMs } : {}),
      ...(senderTuning ? { senderTuning } : {}),
    })
  }

  async #listen(): Promise<string> {
    const { log, role, clock } = this.#options
    const { host, port } = this.#config.http.listen
    const admin = buildAdmin({
      ports: adminPorts({
        metrics: this.metrics,
        clock,
        about: { version, startedAtMs: this.#startedAtMs, role },
        draining: () => this.#stopping.signal.aborted,
        runtime: () => this.#runtime,
        redisTrouble: () => this.#redisWatch?.trouble(),
        reload: () => this.reload(),
      }),
      adminToken: () => this.#config.http.adminToken,
      hosts: () => [this.#config.http.listen.host, ...this.#config.http.hosts],
      display: () => this.#config.display,
      clock,
      log,
    })
    this.#teardown.push('http', () => admin.close())
    try {
      return await admin.listen({ host, port })
    } catch (cause) {
      throw new UserError(`http.listen: ${host}:${port} cannot be opened (${toError(cause).message}).`, {
        cause,
      })
    }
  }
}

function refused(reason: string): ReloadResult {
  return { ok: false, mistakes: [reason] }
}

function namesOf({ sources, sinks }: Config): { sources: string[]; sinks: string[] } {
  return { sources: Object.keys(sources), sinks: Object.keys(sinks) }
}
