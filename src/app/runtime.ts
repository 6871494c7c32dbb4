import type { OrphansPort, QuarantinePort } from '../admin/ports.ts'
import { troublesOf, verdictOf } from '../admin/verdict.ts'
import { sharersOf, sharingWith } from '../config/checks/accounts.ts'
import type { Config } from '../config/schema.ts'
import { collectQueues } from '../delivery/queue/gauges.ts'
import { createSender, type Sender } from '../delivery/sender.ts'
import { durationText } from '../lib/duration.ts'
import { UserError } from '../lib/errors.ts'
import { collectOverdue } from '../poller/health.ts'
import { createNoticeStore } from '../store/operators/notices.ts'
import { createPauseStore } from '../store/operators/pauses.ts'
import { createBreakerStore } from '../store/sink/breakers.ts'
import { createSinkQuarters, type SinkQuarters } from '../store/sink/sink-quarters.ts'
import { type ActiveConfig, createActiveConfig } from './active-config.ts'
import { differenceOf, type PartsDifference, valuesOf } from './built-parts.ts'
import { findContextBy } from './find-context.ts'
import { keepFiredAlerts } from './fired-alerts.ts'
import { createOperators, type Operators } from './notices/operators.ts'
import { quarantinePort } from './operator-api/quarantine.ts'
import { createOrphanService, type OrphanService } from './orphans/service.ts'
import { createPauses, type Pauses } from './pauses.ts'
import { retentionOf } from './routing.ts'
import { sampleSinks } from './sink-samples.ts'
import { createPollers, type Pollers } from './source/pollers.ts'
import { createSameFeed, type SameFeed } from './source/same-feed.ts'
import type { Source } from './source/source.ts'
import { type RuntimeStatus, readStatus } from './status.ts'
import type { RuntimeTools } from './tools.ts'

/**
 * Everything that is built from a config, except the HTTP server and the connections: the sources that poll, the queues,
 * the sinks that send. A reload puts another config in force: parts whose config is the same go on without a break, the
 * others are replaced at once, and each old part finishes what it is doing.
 */
export interface Runtime {
  start(): void
  /** Throws a UserError when a sink cannot be built; then nothing has changed. */
  reload(config: Config): Change
  /** No new poll at once, running sends finish. Never rejects. */
  stop(): Promise<void>
  /** How long `stop` may take at most, without the second in which the queues are closed. */
  stopMsMax(): number
  /** Ends within seconds, and never rejects: what Redis does not return in time is null. */
  status(): Promise<RuntimeStatus>
  /** Why only a new process helps. Reads the state of this process only. */
  hung(): string | undefined
  /** Reads gauges from Redis; a gauge that Redis does not return in time keeps its last value. */
  collectMetrics(): Promise<void>
  readonly quarantine: QuarantinePort
  /** False when there is no such source; throws a UserError when its pace is fixed. */
  hot(source: string, untilMs: number): Promise<boolean>
  /** False when there is no such source; throws a UserError when it is hot until another time than `untilMs`. */
  cool(source: string, untilMs: number | undefined): Promise<boolean>
  readonly sender: Sender
  readonly pauses: Pauses
  readonly sinkQuarters: SinkQuarters
  readonly orphans: OrphansPort
  /** Read it once for each piece of work: a reload replaces it. */
  readonly active: ActiveConfig
}

interface Change {
  readonly sources: PartsDifference
  readonly sinks: PartsDifference
  /** Resolves when nothing uses the old config any more: its last page is handled, its last send is over. */
  readonly settled: Promise<void>
}

/** When more jobs wait than this, polling pauses. A job takes about 1.2 KB in Redis. */
const waitingJobsMax = 500_000
/** Reading a page takes 10 s at most; the rest is for storing what it shows. */
const pollersStopMsMax = 20_000

/** Throws a UserError when a sink cannot be built; nothing runs before `start`. */
export function createRuntime(config: Config, tools: RuntimeTools): Runtime {
  return new ConfiguredRuntime(config, tools)
}

class ConfiguredRuntime implements Runtime {
  readonly sender: Sender
  readonly pauses: Pauses
  readonly sinkQuarters: SinkQuarters
  readonly #tools: RuntimeTools
  readonly #pollers: Pollers
  readonly #operators: Operators
  readonly #orphanService: OrphanService
  readonly #stopping = new AbortController()
  #active: ActiveConfig
  readonly #sameFeed: SameFeed
  #watching: Promise<unknown> = Promise.resolve()
  #refusedElsewhere = false

  constructor(config: Config, tools: RuntimeTools) {
    this.#tools = tools
    const { redis, log, clock, metrics, role } = tools
    const { prefix } = config.redis
    this.#sameFeed = createSameFeed({ sources: () => this.#active.config.sources, log })
    this.#orphanService = createOrphanService({
      ...tools,
      prefix,
      active: () => this.#active,
      operators: () => this.#operators,
    })
    this.#active = this.#make(config, undefined)
    this.#pollers = createPollers({ polls: role !== 'sender' })
    this.sender = createSender({
      redisBlocking: redis.blocking,
      redis: redis.commands,
      prefix,
      sinks: valuesOf(this.#active.sinks),
      metrics,
      log,
      clock,
      onBreaker: (news) => this.#operators.onBreaker(news),
      findContext: findContextBy(() => this.#active, clock),
      retention: () => retentionOf(this.#active.config),
      ...(tools.senderTuning ? { tuning: tools.senderTuning } : {}),
    })
    this.pauses = createPauses({
      hasSink: (sink) => Object.hasOwn(this.#active.config.sinks, sink),
      store: createPauseStore(redis.commands, prefix),
      lookEveryMs: tools.operatorsLookEveryMs,
      clock,
      log,
    })
    this.sinkQuarters = createSinkQuarters(redis.commands, prefix)
    this.#operators = createOperators({
      active: () => {
        const { operators, display } = this.#active.config
        return { operators, timeZone: display.timeZone, ...this.#active }
      },
      sources: () => this.#lookAtSources(),
      findings: () => this.#findings(),
      breakers: () => this.sender.states(),
      kept: createBreakerStore(redis.commands, prefix).readAll,
      lookEveryMs: tools.operatorsLookEveryMs,
      store: createNoticeStore(redis.commands, prefix),
      clock,
      log,
    })
  }

  get orphans(): OrphansPort {
    return this.#orphanService.port
  }

  get active(): ActiveConfig {
    return this.#active
  }

  get quarantine(): QuarantinePort {
    return quarantinePort(this.#sources)
  }

  start(): void {
    this.sender.start({ sends: this.#tools.role !== 'poller' })
    void this.#pollers.swap(valuesOf(this.#active.sources))
    const { signal } = this.#stopping
    this.#watching = Promise.all([
      this.#operators.run(signal),
      this.#orphanService.run(signal),
      this.pauses.run(signal),
      sampleSinks(
        {
          queues: () => this.#active.queues,
          store: this.sinkQuarters,
          metrics: this.#tools.metrics,
          clock: this.#tools.clock,
          log: this.#tools.log,
          lookEveryMs: this.#tools.operatorsLookEveryMs,
        },
        signal,
      ),
      keepFiredAlerts({ active: () => this.#active, clock: this.#tools.clock, log: this.#tools.log }, signal),
    ])
  }

  reload(config: Config): Change {
    const before = this.#active
    const next = this.#make(config, before)
    // From here on every new piece of work uses the new config.
    this.#active = next
    next.inForce.intake = next.intake
    this.#orphanService.onConfig()
    const ended = Promise.all([
      ...[...valuesOf(before.sources).values()].map((source) => source.pollOver()),
      this.#pollers.swap(valuesOf(next.sources)),
      this.sender.swap(valuesOf(next.sinks)),
    ])
    // The operator may have mended what a source was stopped for, such as a token.
    for (const { poller } of this.#sources) if (poller.status().state === 'stopped') poller.pollNow()
    return {
      sources: differenceOf(before.sources, next.sources),
      sinks: differenceOf(before.sinks, next.sinks),
      settled: ended.then(() => {}),
    }
  }

  stopMsMax(): number {
    return Math.max(this.sender.stopMsMax(), pollersStopMsMax)
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopping'))
    await Promise.allSettled([this.#watching, this.#pollers.stop(), this.sender.stop()])
    await this.#active.queues.close().catch(() => {})
  }

  status(): Promise<RuntimeStatus> {
    return readStatus({
      tools: this.#tools,
      active: this.#active,
      lanes: this.sender.states(),
      pauses: this.pauses,
      orphanService: this.#orphanService,
      sameFeed: this.#sameFeed,
    })
  }

  hung(): string | undefined {
    if (this.#tools.role === 'sender') return undefined
    return this.#sources.map(({ poller }) => poller.hung()).find((why) => why !== undefined)
  }

  async collectMetrics(): Promise<void> {
    for (const { sink, stuck } of this.sender.states())
      this.#tools.metrics.sinkStuck.set({ sink }, stuck ? 1 : 0)
    for (const { poller } of this.#sources) collectOverdue(poller.status(), this.#tools)
    await collectQueues({ queues: this.#active.queues, metrics: this.#tools.metrics })
    await this.#orphanService.collectMetrics(this.sender.ending())
  }

  async hot(name: string, untilMs: number): Promise<boolean> {
    const { config, sources } = this.#active
    const source = valuesOf(sources).get(name)
    const everyMs = source && config.sources[name]?.poll.every
    if (everyMs !== undefined)
      throw new UserError(
        `Source ${name} polls at a fixed pace (poll.every ${durationText(everyMs)}), which nothing makes faster.`,
      )
    await source?.hot(untilMs)
    return source !== undefined
  }

  async cool(name: string, untilMs: number | undefined): Promise<boolean> {
    const done = await valuesOf(this.#active.sources).get(name)?.cool(untilMs)
    if (done === false) throw new UserError(`Source ${name} is not polled more often until that time.`)
    return done !== undefined
  }

  async #findings() {
    const status = await this.status()
    if (!status.redis.ok) return undefined
    const { role, clock } = this.#tools
    const refusedReload = this.#tools.refusedReload?.() ?? null
    const facts = { ...status, role, draining: false, refusedReload }
    const { findings } = verdictOf(facts, clock.now())
    // Over when no process has refused its last reload, seen at two looks: the list of processes is some seconds old.
    const { processes } = status
    const before = this.#refusedElsewhere
    this.#refusedElsewhere = processes.length === 0 || processes.some((each) => each.refusedReload)
    const isOpen = refusedReload === null && (before || this.#refusedElsewhere)
    const troubles = troublesOf(facts).filter((trouble) => trouble !== 'reload' || !isOpen)
    return { findings, troubles }
  }

  async #lookAtSources() {
    const looks = this.#sources.map(async ({ quarantine, ...source }) => {
      const counts = quarantine.counts().catch(() => undefined)
      return { status: await source.status(), quarantine: await counts }
    })
    return (await Promise.all(looks)).flatMap(({ status, ...look }) => (status ? [{ status, ...look }] : []))
  }

  async #tooManyWaiting(): Promise<boolean> {
    return (await this.#active.queues.waiting()) > waitingJobsMax
  }

  get #sources(): readonly Source[] {
    return [...valuesOf(this.#active.sources).values()]
  }

  #make(config: Config, before: ActiveConfig | undefined): ActiveConfig {
    return createActiveConfig(config, before, {
      ...this.#tools,
      tooManyWaiting: () => this.#tooManyWaiting(),
      sharers: (source) => sharersOf(this.#active.config.sources, source),
      sharing: (source) => sharingWith(this.#active.config.sources, source),
      onHead: (source, page) => this.#sameFeed.saw(source, page),
      names: this.#orphanService.names,
      onRules: (source, report) => this.#operators.onRules(source, report),
      succeed: (source) => this.#orphanService.takeOver(source),
    })
  }
}
