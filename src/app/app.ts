import { buildAdmin } from '../admin/admin.ts'
import { listenAt } from '../admin/listen.ts'
import type { ReloadResult } from '../admin/ports.ts'
import type { StatusFacts } from '../admin/views/status-view.ts'
import type { LoadedConfig } from '../config/load.ts'
import { formatMistake } from '../config/mistakes/mistake.ts'
import { publicHashOf } from '../config/redact.ts'
import type { Config } from '../config/schema.ts'
import { dropLocks } from '../delivery/queue/queues.ts'
import type { Tuning } from '../delivery/settings.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { toError, UserError } from '../lib/errors.ts'
import { given } from '../lib/given.ts'
import { createDrawer } from '../sinks/chart/drawer.ts'
import { faultOf, type RedisPair } from '../store/connection/redis.ts'
import { redisErrorText } from '../store/connection/redis-errors.ts'
import { createKnownUnits } from '../store/ledger/known-units.ts'
import { dropLeases } from '../store/source/lease.ts'
import type { Logger, LogLevel } from '../telemetry/log.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import { initialiseMetrics } from '../telemetry/series.ts'
import { createTracer } from '../telemetry/tracer.ts'
import { version } from '../telemetry/version.ts'
import { differing, fixedParts } from './fixed-parts.ts'
import { adminPorts } from './operator-api/ports.ts'
import { admitRedis, openRedis } from './redis.ts'
import { createRedisWatch, type RedisWatch } from './redis-watch.ts'
import type { Role } from './roles.ts'
import { createRuntime, type Runtime } from './runtime.ts'
import { seriesOf } from './series-of.ts'
import { buildSinks } from './sinks.ts'
import { Teardown } from './teardown.ts'
import type { RuntimeTools } from './tools.ts'

/**
 * The whole bridge, built from a checked config. The HTTP server starts first and stops last, so that it answers probes
 * while the bridge waits for Redis and while sends finish. A reload changes everything in the config, except the server's
 * address, the connection to Redis and the data directory; new parts are built before the old ones stop.
 */
export interface App {
  /**
   * Resolves to the address of the HTTP server once the bridge runs, which needs Redis to answer; to an empty text when
   * `stop` is called before. Rejects with the error that keeps the bridge from running.
   */
  start(): Promise<string>
  /** No new poll starts, every running send has the time-out of its sink to finish, the rest stays queued. Idempotent. */
  stop(): Promise<void>
  /** Resolves once the config on disk is in force, or with the reasons why not; old parts may still be ending then. */
  reload(): Promise<ReloadResult>
  /** Resolves (never rejects) with the error that keeps the bridge from running. */
  readonly failed: Promise<Error>
  readonly metrics: Metrics
}

export interface AppOptions {
  readonly log: Logger
  readonly role?: Role
  readonly clock?: Clock
  /** Reads the config again; without it `reload` is refused. */
  readonly load?: () => LoadedConfig
  /** Called with the log level of a config that was reloaded. */
  readonly setLogLevel?: (level: LogLevel) => void
  /** How often the settings of Redis are checked, in milliseconds. */
  readonly redisCheckEveryMs?: number
  /** How often sinks and sources are checked for notices to operators, in milliseconds. */
  readonly operatorsLookEveryMs?: number
  readonly senderTuning?: Partial<Tuning>
  /** How long a message waits for its chart, in milliseconds. */
  readonly chartWaitMsMax?: number
}

const stopStepTimeoutMs = 25_000
/** Added to the limit that the runtime sets itself. */
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
  readonly #knownUnits = createKnownUnits()
  readonly #fail: (error: Error) => void
  /** As they were at the start: a secret in a file may have changed since. */
  #fixed: ReadonlyMap<string, string>
  #config: Config
  #refusedReload: StatusFacts['refusedReload'] = null
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
    const tracer = config.traces === undefined ? undefined : createTracer(config.traces, log)
    if (tracer) this.#teardown.push('traces', () => tracer.close())
    this.metrics = createMetrics({ version, node: process.version }, tracer)
    initialiseMetrics(this.metrics, seriesOf(config))
    this.metrics.configReloadSuccessful.set(1)
    this.#countConfig(config)
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
      // When `stop` is called before the start is done, that is no failure.
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
    const at = new Date(this.#options.clock.now()).toISOString()
    this.#refusedReload = result.ok ? null : { at, mistakes: result.mistakes }
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

  /** Synchronous: two reloads never overlap, and the last one wins. */
  #change(config: Config): ReloadResult {
    const { log, setLogLevel } = this.#options
    const runtime = this.#runtime
    // Before the start is done, the config is only kept for it; that its sinks can be built is checked now.
    const change = runtime ? runtime.reload(config) : void buildSinks(config)
    initialiseMetrics(this.metrics, seriesOf(config))
    this.#config = config
    this.#countConfig(config)
    setLogLevel?.(config.log.level)
    const { settled, ...changes } = change ?? {}
    log.info({ ...namesOf(config), changes }, 'reloaded')
    void settled?.then(() => log.debug('all parts of the old config have ended'))
    return { ok: true }
  }

  #countConfig(config: Config): void {
    this.metrics.configHash.set(publicHashOf(config))
    this.metrics.configReloaded.set(this.#options.clock.now() / 1_000)
  }

  async #stop(): Promise<void> {
    this.#stopping.abort(new Error('stopping'))
    // Waits for a start that is under way, then stops it all: the signal ends the wait for Redis, all else has limits.
    await Promise.allSettled([this.#starting])
    await this.#teardown.run(stopStepTimeoutMs)
    this.#options.log.info('stopped')
  }

  /**
   * Only one process at a time uses the embedded Redis, since the data directory is locked. So leases and locks that are
   * still there are of a process that was killed: they are deleted, and nothing waits until they expire.
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
        'the leases and locks of the last process could not be removed; they expire by themselves',
      )
    }
  }

  #watch({ commands }: RedisPair): void {
    const { log, clock, redisCheckEveryMs: everyMs } = this.#options
    const { prefix } = this.#config.redis
    const watch = createRedisWatch({ redis: commands, prefix, log, clock, ...given({ everyMs }) })
    this.#redisWatch = watch
    const running = watch.run(this.#stopping.signal)
    this.#teardown.push('redis watch', () => running)
  }

  #createRuntime(config: Config, redis: RedisPair): Runtime {
    const { log, role, clock, operatorsLookEveryMs, senderTuning } = this.#options
    const onFault = (reason: string) => log.warn({ reason }, 'charts cannot be drawn for now')
    const drawer = createDrawer({ onFault, waitMsMax: this.#options.chartWaitMsMax })
    this.#teardown.push('charts', () => drawer.close())
    const kept = { processStates: this.#processStates, knownUnits: this.#knownUnits }
    const shared = { metrics: this.metrics, ...kept, drawer }
    const tools = { redis, log, role, clock, refusedReload: () => this.#refusedReload, ...shared }
    return createRuntime(config, { ...tools, ...given({ operatorsLookEveryMs, senderTuning }) })
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
        refusedReload: () => this.#refusedReload,
        redisFault: () => this.#redis && faultOf(this.#redis.commands),
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
      return await listenAt(admin, { host, port })
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
