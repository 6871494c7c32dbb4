import type { AdminPorts, ReloadResult, SeenView, SilencesPort, SourcePlanView } from '../../admin/ports.ts'
import { findingsText, verdictOf } from '../../admin/verdict.ts'
import type { SilenceView } from '../../admin/views/delivery-view.ts'
import type { StatusFacts, StatusView } from '../../admin/views/status-view.ts'
import { alertOfKey } from '../../alert/alert.ts'
import { sharingWith } from '../../config/checks/accounts.ts'
import { sinkActivity } from '../../delivery/records/activity.ts'
import { newestOf, sampleOf } from '../../delivery/records/sample.ts'
import { openReader } from '../../delivery/records/search.ts'
import type { Order, Portion } from '../../delivery/records/selection.ts'
import type { Clock } from '../../lib/clock.ts'
import { NotFoundError, UserError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import { silenceProblem } from '../../routing/silences.ts'
import type { SilenceStore, StoredSilence } from '../../store/operators/silences.ts'
import { findingLevels, type Metrics } from '../../telemetry/metrics.ts'
import { openMetricsText } from '../../telemetry/open-metrics.ts'
import type { ActiveConfig } from '../active-config.ts'
import { valuesOf } from '../built-parts.ts'
import type { Role } from '../roles.ts'
import type { Runtime } from '../runtime.ts'
import type { RuntimeStatus } from '../status.ts'
import { alertStoryOf, withHolds } from './alert-story.ts'
import { readerOptions, searchDeliveries } from './delivery-search.ts'
import { explainAlert } from './explain-alert.ts'
import { previewSilence } from './silence-preview.ts'
import { storedAlerts } from './stored-alerts.ts'
import { deadLetterRow, deliveryRowOf, isoOf, jobStateOf, letterGroupsView } from './views.ts'
import { sendWithheld, withheldRecord } from './withheld.ts'

interface PortsOptions {
  readonly metrics: Metrics
  readonly clock: Clock
  readonly about: { readonly version: string; readonly startedAtMs: number; readonly role: Role }
  draining(): boolean
  /** undefined until Redis has answered for the first time. */
  runtime(): Runtime | undefined
  refusedReload(): StatusFacts['refusedReload']
  /** Why Redis is waited for. */
  redisFault(): string | undefined
  /** What is wrong with a Redis that answers. */
  redisTrouble(): string | undefined
  reload(): Promise<ReloadResult>
}

/** Builds the ports that the admin server needs from the parts of the bridge. */
export function adminPorts(options: PortsOptions): AdminPorts {
  const { metrics, clock, about, draining, reload } = options
  const running = (): Runtime => {
    const runtime = options.runtime()
    if (runtime) return runtime
    throw new Error('the bridge is still starting')
  }
  /** Called once per request: a reload may put another one in force meanwhile. */
  const active = (): ActiveConfig => running().active
  const ports: AdminPorts = {
    async metricsText(format) {
      const [{ ready, verdict }] = await Promise.all([ports.status(), options.runtime()?.collectMetrics()])
      metrics.ready.set(ready.ok ? 1 : 0)
      for (const level of findingLevels)
        metrics.findings.set({ level }, verdict.findings.filter((finding) => finding.level === level).length)
      return format === 'openmetrics' ? openMetricsText(metrics.registry) : metrics.registry.metrics()
    },
    // A process that is stopping polls no more.
    hung: () => (draining() ? undefined : options.runtime()?.hung()),
    async status(): Promise<StatusView> {
      const { version, startedAtMs, role } = about
      const { redis, ...rest } = (await options.runtime()?.status()) ?? unknownYet(options.redisFault())
      const trouble = options.redisTrouble()
      const facts: StatusFacts = {
        version,
        role,
        startedAt: isoOf(startedAtMs),
        // Not negative when the clock was set back.
        uptimeSeconds: Math.max(0, Math.round((clock.now() - startedAtMs) / 1_000)),
        draining: draining(),
        refusedReload: options.refusedReload(),
        redis: { ...redis, ...(redis.ok && trouble !== undefined ? { trouble } : {}) },
        ...rest,
      }
      const verdict = verdictOf(facts, clock.now())
      return { ...facts, ready: { ok: verdict.ready, reason: findingsText(verdict) }, verdict }
    },
    reload,
    quarantine: {
      list: (query) => running().quarantine.list(query),
      retry: (selection) => running().quarantine.retry(selection),
      drop: (order) => running().quarantine.drop(order),
    },
    deliveries: deliveriesPort(active, async () => (await ports.status()).sinks),
    deadLetters: deadLettersPort(active),
    replay: async (order) => replay(active(), order),
    audit: {
      add: async (row) => active().audit.add({ ...row, ids: [...row.ids] }),
      list: async (limit) => active().audit.list(limit),
    },
    get idempotency() {
      return active().idempotency
    },
    sinks: {
      pause: (name, order) => running().pauses.pause(name, order),
      resume: (name, id) => running().pauses.resume(name, id),
      async probe(name) {
        // Who stops has no lane any more, of whatever sink.
        if (draining()) throw new UserError('The bridge is stopping: it sends nothing any more.')
        return running().sender.probe(name)
      },
      activity: async () => sinkActivity(active().queues, running().sinkQuarters, clock.now()),
    },
    sources: {
      hot: (name, untilMs) => running().hot(name, untilMs),
      cool: (name, untilMs) => running().cool(name, untilMs),
      day: async (name) => valuesOf(active().sources).get(name)?.day(),
      seen: async (name, id) => seenRow(active(), name, id),
      plan: async (name) => sourcePlan(active(), name),
    },
    get orphans() {
      return running().orphans
    },
    async rules(wanted) {
      const { config, routing } = active()
      if (wanted !== undefined && !Object.hasOwn(config.sources, wanted))
        throw new NotFoundError(`There is no source ${wanted}.`)
      const rows = await routing.knownRules()
      return wanted === undefined ? rows : rows.filter(({ source }) => source === wanted)
    },
    silences: silencesPort(active, clock),
  }
  return ports
}

/** The status before Redis has answered for the first time. */
const unknownYet = (fault = 'waiting for Redis'): RuntimeStatus => ({
  redis: { ok: false, error: fault },
  sources: [],
  sinks: [],
  unrouted: null,
  quarantined: null,
  quarantineFellOut: null,
  orphans: null,
  processes: [],
})

function deliveriesPort(
  active: () => ActiveConfig,
  sinks: () => Promise<StatusView['sinks']>,
): AdminPorts['deliveries'] {
  return {
    search: async (query) => searchDeliveries(active(), query),
    stored: async (query) => storedAlerts(active(), query),
    async changed({ limit, sink, state }) {
      const query = { limit, ...given({ sink, state: state && jobStateOf(state) }) }
      return (await active().deliveryLog.list(query)).map(deliveryRowOf)
    },
    async story(source, id) {
      const story = await alertStoryOf(active(), source, id)
      return story && withHolds(story, sinks)
    },
    explain: (source, id, atMs) => explainAlert(active(), { source, id }, atMs),
  }
}

function deadLettersPort(active: () => ActiveConfig): AdminPorts['deadLetters'] {
  return {
    async list(query) {
      const { letters, ...page } = await active().deadLetters.list(query)
      return { data: letters.map(deadLetterRow), ...page }
    },
    groups: async () => letterGroupsView(await active().deadLetters.groups()),
    retry: (order) => active().deadLetters.retry(order),
    drop: (order) => active().deadLetters.drop(order),
  }
}

async function replay(config: ActiveConfig, order: Order): Promise<Portion> {
  const portion = await config.replay.replay(order)
  const { missing: ids, atMs, handled } = portion
  // Without a sink in the order, only what was sent is sent again, nothing that was withheld.
  const { sink, dryRun = false } = order
  const released = sink === undefined ? [] : await sendWithheld(config, { ids, sink, atMs, dryRun })
  const sample = portion.sample && newestOf([...portion.sample, ...released.map(sampleOf)])
  const missing = await unknownOf(config, ids)
  return { ...portion, ...given({ sample }), handled: handled + released.length, missing }
}

async function seenRow(config: ActiveConfig, name: string, id: number): Promise<SeenView | undefined> {
  const row = await valuesOf(config.sources).get(name)?.seen(id)
  if (row === undefined) return undefined
  const reader = await openReader(readerOptions(config))
  const dropped = await reader.dropped([`${name}.${id}`])
  return { source: name, id, ...row, dropped: dropped.length > 0 }
}

async function sourcePlan(
  { config, sources }: ActiveConfig,
  name: string,
): Promise<SourcePlanView | undefined> {
  const [source, { budget, poll } = {}] = [valuesOf(sources).get(name), config.sources[name]]
  if (source === undefined || !budget || !poll) return undefined
  const [learned, resetsAt, unitsPerDay, unitsOfAccount] = await Promise.all([
    source.learned(),
    source.resetsAt(),
    source.unitsPerDay(),
    source.unitsOfAccount(),
  ])
  const paces = sharingWith(config.sources, name).map((each) => each.poll.every ?? null)
  const plan = { source: name, budget, poll, resetsAt, learned: learned ?? null }
  return { ...plan, unitsPerDay, unitsOfAccount, paces }
}

/** The ids of which the bridge has no record (any more). */
async function unknownOf(config: ActiveConfig, ids: readonly string[]): Promise<string[]> {
  const unknown: string[] = []
  for (const id of ids) {
    const alert = alertOfKey(id)
    const [parts, held] = await Promise.all([
      config.deliveryLog.historiesOf(alert),
      withheldRecord(config, alert.source, alert.id),
    ])
    if (parts.length === 0 && held === undefined) unknown.push(id)
  }
  return unknown
}

/** The silences as the API sets and shows them. */
function silencesPort(active: () => ActiveConfig, clock: Clock): SilencesPort {
  const store = (): SilenceStore => active().routing.silences
  return {
    async list() {
      return (await store().list(clock.now())).map(silenceView)
    },
    async add(silence) {
      return silenceView(await store().add(silence, clock.now()))
    },
    preview: (match) => previewSilence(active(), match, clock.now()),
    expire: (id) => store().expire(id),
  }
}

function silenceView(silence: StoredSilence): SilenceView {
  const { id, written, startsAtMs, endsAtMs, comment } = silence
  const problem = silenceProblem(silence) ?? null
  return { id, match: written, startsAt: isoOf(startsAtMs), endsAt: isoOf(endsAtMs), comment, problem }
}
