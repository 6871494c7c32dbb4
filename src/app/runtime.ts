import type { QuarantinedRow, Readiness, StatusView } from '../admin/status-view.ts'
import type { Config } from '../config/schema.ts'
import type { RuleBook } from '../context/rules.ts'
import { collectQueues } from '../delivery/collect.ts'
import { createDeadLetters, type DeadLetters } from '../delivery/dead-letters.ts'
import { createDeliveryLog, type DeliveryLog } from '../delivery/delivery-log.ts'
import { createQueues, type SinkQueues } from '../delivery/queues.ts'
import { createReplay, type Replay } from '../delivery/resend.ts'
import { createSender, type Sender } from '../delivery/sender.ts'
import { toError } from '../lib/errors.ts'
import { budgetDay } from '../schedule/budget-day.ts'
import { createNoticeStore } from '../store/notices.ts'
import { redisErrorText } from '../store/redis.ts'
import { lagOf } from './lag.ts'
import { createOperators, type Operators } from './operators.ts'
import { type AlertRouting, createRouting, known } from './routing.ts'
import { buildSinks, closeSinks, type SinkMap } from './sinks.ts'
import { createSource, type Source } from './source.ts'
import type { RuntimeTools } from './tools.ts'
import { quarantinedRow, sinkView, sourceView } from './views.ts'

/**
 * Everything that a config makes beside the HTTP server and the connections: the sources that poll, the queues, the
 * sinks that send. One config, one runtime; a reload makes a new one.
 */
export interface Runtime {
  start(): Promise<void>
  /** No new poll at once, running sends within the deadline. Never rejects. */
  stop(deadlineMs: number): Promise<void>
  readiness(): Promise<Readiness>
  status(): Promise<Pick<StatusView, 'redis' | 'sources' | 'sinks' | 'unrouted' | 'quarantined'>>
  /** Gauges that only Redis knows; what it does not tell in time keeps its last value. */
  collectMetrics(): Promise<void>
  quarantine(query: { limit: number }): Promise<readonly QuarantinedRow[]>
  hot(source: string, untilMs: number): Promise<boolean>
  readonly deliveryLog: DeliveryLog
  readonly deadLetters: DeadLetters
  readonly replay: Replay
  readonly sender: Sender
  readonly queues: SinkQueues
  readonly routing: AlertRouting
  /** The targets of a sink, each with deliveries of its own. */
  targetsOf(sink: string): readonly (string | undefined)[]
}

/** So many jobs may wait in all before polling pauses: about 1.2 KB each in Redis. */
const waitingJobsMax = 500_000
const pingTimeoutMs = 2_000

/** Throws a UserError over a sink that cannot be built; nothing runs before `start`. */
export function createRuntime(config: Config, tools: RuntimeTools): Runtime {
  return new ConfiguredRuntime(config, tools)
}

class ConfiguredRuntime implements Runtime {
  readonly deliveryLog: DeliveryLog
  readonly deadLetters: DeadLetters
  readonly replay: Replay
  readonly sender: Sender
  readonly queues: SinkQueues
  readonly routing: AlertRouting
  readonly targetsOf: Runtime['targetsOf']
  readonly #tools: RuntimeTools
  readonly #display: Config['display']
  readonly #sinks: SinkMap
  readonly #sources: readonly Source[]
  readonly #operators: Operators
  readonly #polling = new AbortController()
  #loops: Promise<unknown> = Promise.resolve()

  constructor(config: Config, tools: RuntimeTools) {
    this.#tools = tools
    this.#display = config.display
    const { redis, log, clock, metrics } = tools
    const { prefix } = config.redis
    this.#sinks = buildSinks(config)
    const targets = new Map([...this.#sinks].map(([name, { sink }]) => [name, sink.targets]))
    this.queues = createQueues({
      redis: redis.commands,
      prefix,
      sinks: [...this.#sinks.keys()],
      retention: { ageMs: config.retention.age, count: config.retention.count },
    })
    const { queues } = this
    this.sender = createSender({
      redisBlocking: redis.blocking,
      redis: redis.commands,
      prefix,
      sinks: this.#sinks,
      metrics,
      log,
      clock,
      onBreaker: (news) => this.#operators.onBreaker(news),
    })
    this.deliveryLog = createDeliveryLog({ queues, targets })
    this.deadLetters = createDeadLetters({ queues, targets, clock })
    this.replay = createReplay({ queues, targets, clock })
    const ruleBooks = new Map<string, RuleBook>()
    this.targetsOf = (sink) => targets.get(sink) ?? [undefined]
    this.routing = createRouting(config, tools, (source) => known(ruleBooks.get(source), source))
    const intake = {
      queues,
      assign: this.routing.assign,
      targetsOf: this.targetsOf,
    }
    this.#sources = Object.entries(config.sources).map(([name, source]) =>
      createSource(name, source, { ...tools, prefix, intake, tooManyWaiting: () => this.#tooManyWaiting() }),
    )
    for (const { name, rules } of this.#sources) ruleBooks.set(name, rules)
    this.#operators = createOperators({
      operators: config.operators,
      queues,
      targetsOf: this.targetsOf,
      sources: () => this.#pollerStatuses(),
      store: createNoticeStore(redis.commands, prefix),
      clock,
      log,
    })
  }

  async start(): Promise<void> {
    const { role } = this.#tools
    const { signal } = this.#polling
    if (role !== 'poller') this.sender.start()
    const pollers = role === 'sender' ? [] : this.#sources.map(({ poller }) => poller.run(signal))
    this.#loops = Promise.all([...pollers, this.#operators.run(signal)])
  }

  async stop(deadlineMs: number): Promise<void> {
    this.#polling.abort(new Error('stopping'))
    await Promise.allSettled([this.#loops, this.sender.stop(deadlineMs)])
    await Promise.allSettled([...this.#sources.map((source) => source.close()), closeSinks(this.#sinks)])
    await this.queues.close().catch(() => {})
  }

  async readiness(): Promise<Readiness> {
    const redisError = await this.#redisError()
    if (redisError !== undefined) return { ok: false, reason: `Redis does not answer: ${redisError}` }
    if (this.#tools.role === 'sender') return { ok: true }
    const nowMs = this.#tools.clock.now()
    const reasons = this.#sources.flatMap(({ name, poller }) => {
      const { ok, reason = 'not healthy' } = poller.health(nowMs)
      return ok ? [] : [`${name}: ${reason}`]
    })
    return reasons.length === 0 ? { ok: true } : { ok: false, reason: reasons.join('; ') }
  }

  async status() {
    const error = await this.#redisError()
    const [queues, counts] = error === undefined ? await this.#readQueuesAndCounts() : [[], undefined]
    const lanes = this.sender.states()
    const { detectionLag, deliveryLag } = this.#tools.metrics
    const sources = this.#sources.map(async (source) => {
      const lag = await lagOf(detectionLag, { source: source.name })
      return sourceView(source.name, await source.status(), source.budgetDay(), lag)
    })
    const sinks = [...this.#sinks].map(async ([name, { sink }]) =>
      sinkView(
        { name, type: sink.type, lag: await lagOf(deliveryLag, { sink: name }) },
        lanes.find((lane) => lane.sink === name),
        queues.find((queue) => queue.sink === name),
      ),
    )
    return {
      redis: error === undefined ? { ok: true } : { ok: false, error },
      sources: await Promise.all(sources),
      sinks: await Promise.all(sinks),
      unrouted: counts?.reduce((sum, { unrouted }) => sum + unrouted, 0) ?? null,
      quarantined: counts?.reduce((sum, { quarantined }) => sum + quarantined, 0) ?? null,
    }
  }

  async collectMetrics(): Promise<void> {
    await collectQueues({ queues: this.queues, metrics: this.#tools.metrics })
  }

  async quarantine({ limit }: { limit: number }): Promise<readonly QuarantinedRow[]> {
    const rows = this.#sources.map(async ({ name, quarantine }) => {
      const found = await quarantine(limit)
      return found.map((each) => quarantinedRow(name, each))
    })
    const all = (await Promise.all(rows)).flat()
    return all.sort((a, b) => b.seenAt.localeCompare(a.seenAt)).slice(0, limit)
  }

  async hot(name: string, untilMs: number): Promise<boolean> {
    const source = this.#sources.find((each) => each.name === name)
    await source?.hot(untilMs)
    return source !== undefined
  }

  async #redisError(): Promise<string | undefined> {
    const { redis } = this.#tools
    const late = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error('no answer in time')), pingTimeoutMs).unref()
    })
    return Promise.race([redis.commands.ping(), late]).then(
      () => undefined,
      (thrown: unknown) => redisErrorText(toError(thrown)),
    )
  }

  async #pollerStatuses() {
    const statuses = await Promise.all(this.#sources.map((source) => source.status()))
    return statuses.filter((status) => status !== undefined)
  }

  /** Redis may go away between two questions: then what it would have told is unknown, and the rest is still told. */
  async #readQueuesAndCounts() {
    const queues = await this.deliveryLog.sinks(this.#todayStartMs()).catch(() => [])
    const counts = await Promise.all(this.#sources.map((source) => source.counts())).catch(() => undefined)
    return [queues, counts] as const
  }

  /** Midnight where the readers are. */
  #todayStartMs(): number {
    const { timeZone } = this.#display
    return budgetDay(this.#tools.clock.now(), { resetsAt: '00:00', timeZone }).startMs
  }

  async #tooManyWaiting(): Promise<boolean> {
    const sinks = await this.deliveryLog.sinks()
    const waiting = sinks.reduce((sum, { counts }) => sum + counts.waiting + counts.delayed, 0)
    return waiting > waitingJobsMax
  }
}
