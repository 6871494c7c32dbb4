import type { LagView, SourceView, StatusFacts } from '../admin/views/status-view.ts'
import type { LaneState } from '../delivery/sender.ts'
import { within } from '../lib/time-limit.ts'
import { budgetDay } from '../schedule/budget.ts'
import { failureText } from '../store/connection/redis.ts'
import { probeKey } from '../store/keys.ts'
import { createBreakerStore } from '../store/sink/breakers.ts'
import { thisProcess } from '../store/source/lease.ts'
import type { ActiveConfig } from './active-config.ts'
import { valuesOf } from './built-parts.ts'
import { lagsBy } from './lag.ts'
import { sinkView } from './operator-api/sink-view.ts'
import { sourceView } from './operator-api/views.ts'
import type { OrphanService } from './orphans/service.ts'
import type { Pauses } from './pauses.ts'
import type { SameFeed } from './source/same-feed.ts'
import type { Source } from './source/source.ts'
import type { RuntimeTools } from './tools.ts'

/** The part of the status that depends on the config. */
export type RuntimeStatus = Pick<
  StatusFacts,
  'redis' | 'sources' | 'sinks' | 'unrouted' | 'quarantined' | 'quarantineFellOut' | 'orphans' | 'processes'
>

interface StatusDeps {
  readonly tools: RuntimeTools
  /** Read once by the caller: a reload may put another one in force meanwhile. */
  readonly active: ActiveConfig
  readonly lanes: readonly LaneState[]
  readonly pauses: Pick<Pauses, 'list'>
  readonly orphanService: Pick<OrphanService, 'list' | 'processes'>
  readonly sameFeed: Pick<SameFeed, 'noteOf'>
}

const pingTimeoutMs = 2_000
/** Together with the ping, less than the time-out of a readiness probe (5 s in the chart). */
const readTimeoutMs = 2_500

/** Ends within seconds, and never rejects: what Redis does not return in time is null. */
export async function readStatus(deps: StatusDeps): Promise<RuntimeStatus> {
  const { active, orphanService, tools } = deps
  const error = await redisError(deps)
  const ask = async <T>(what: string, work: () => Promise<T>): Promise<T | undefined> =>
    error === undefined ? within(readTimeoutMs, what, work()).catch(() => undefined) : undefined
  const configured = [...valuesOf(active.sources).values()]
  const { detectionLag, deliveryLag } = tools.metrics
  const [detected, delivered] = [await lagsBy(detectionLag, 'source'), await lagsBy(deliveryLag, 'sink')]
  const breakerStore = createBreakerStore(tools.redis.commands, active.config.redis.prefix)
  const [
    queues = [],
    counts,
    kindNotes,
    silenceNotes = [],
    orphans = null,
    processes = [],
    pauses,
    breakers = [],
    sources,
  ] = await Promise.all([
    ask('the queues', () => active.deliveryLog.sinks(todayStartMs(deps))),
    ask('the counts', () => Promise.all(configured.map((source) => source.counts()))),
    ask('the kinds', () => active.routing.kindNotes()),
    ask('the silences', () => active.routing.silenceNotes()),
    ask('what was left behind', () => orphanService.list()),
    ask('the processes', () => orphanService.processes()),
    ask('the pauses', () => deps.pauses.list()),
    ask('the breakers', () => breakerStore.readAll([...active.sinks.keys()])),
    Promise.all(configured.map((source) => viewOf(source, detected.get(source.name) ?? null, deps))),
  ])
  const sinks = [...valuesOf(active.sinks)].map(([name, { sink }], at) => {
    const facts = {
      about: { name, type: sink.type, lag: delivered.get(name) ?? null },
      lane: deps.lanes.find((lane) => lane.sink === name),
      breaker: breakers[at],
      queue: queues.find((queue) => queue.sink === name),
      pause: pauses?.get(name),
    }
    return sinkView(facts, tools.clock.now())
  })
  return {
    redis: error === undefined ? { ok: true } : { ok: false, error },
    sources: sources.map((view) => ({
      ...view,
      notes: [...view.notes, ...(kindNotes?.get(view.name) ?? []), ...silenceNotes],
    })),
    sinks,
    unrouted: counts?.reduce((sum, { unrouted }) => sum + unrouted, 0) ?? null,
    quarantined: counts?.reduce((sum, { quarantined }) => sum + quarantined, 0) ?? null,
    quarantineFellOut: counts?.reduce((sum, { fellOut }) => sum + fellOut, 0) ?? null,
    orphans,
    processes,
  }
}

async function viewOf(
  source: Source,
  lag: LagView | null,
  { tools, sameFeed }: StatusDeps,
): Promise<SourceView> {
  const { name, poller } = source
  // A process that only sends never polls, so its poller has no fault.
  const polls = tools.role !== 'sender'
  const health = poller.health()
  const status = await within(readTimeoutMs, 'the source', source.status()).catch(() => poller.status())
  const here = polls && !['starting', 'standby'].includes(poller.status().state)
  const fault = polls && !health.ok ? { why: health.why, reason: health.reason } : null
  const view = sourceView({
    name,
    here,
    fault,
    lag,
    status,
    nowMs: tools.clock.now(),
    day: source.budgetDay(),
    tooThin: (unitsPerDay) => source.tooThin(unitsPerDay),
  })
  const polledBy = here ? thisProcess : view.polledBy
  const more = [source.standby(), sameFeed.noteOf(name)]
  const notes = more.flatMap((note) => (note === undefined || note === view.reason ? [] : [note]))
  return { ...view, polledBy, notes: [...view.notes, ...notes] }
}

async function redisError({ tools, active }: StatusDeps): Promise<string | undefined> {
  // In a cluster any node answers a ping. This asks the node that has the keys of the bridge.
  const probe = tools.redis.commands.exists(probeKey(active.config.redis.prefix))
  return within(pingTimeoutMs, 'an answer of Redis', probe).then(
    () => undefined,
    (thrown: unknown) => failureText(tools.redis.commands, thrown),
  )
}

/** The last midnight in the time zone of `display`. */
function todayStartMs({ tools, active }: StatusDeps): number {
  const { timeZone } = active.config.display
  return budgetDay(tools.clock.now(), { resetsAt: '00:00', timeZone }).startMs
}
