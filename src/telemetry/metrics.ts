import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { lagBuckets } from './lag-buckets.ts'
import type { Tracer } from './tracer.ts'

/**
 * The catalogue of metrics: every name, label and bucket in one place, each label a closed set, so that every counter is 0
 * from the start (of HTTP statuses, 200, 401 and 403). Never an alert's id, symbol or headline as a label.
 */
export type Metrics = ReturnType<typeof createMetrics>

/** Seconds of one HTTP or SMTP exchange. */
const exchangeBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30]

/** Which limit of the API was hit. */
export const apiLimits = ['minute', 'budget'] as const
export type ApiLimit = (typeof apiLimits)[number]
export const purposes = ['poll', 'walk', 'sweep', 'history', 'rules', 'context', 'api'] as const
export const sendResults = ['delivered', 'retry', 'dead', 'expired'] as const
export const queueStates = ['waiting', 'active', 'delayed', 'failed', 'completed', 'paused'] as const
export const holdReasons = ['muted', 'silenced', 'throttled'] as const
/** What a source does, for the replica that polls it. */
export const sourceStates = [
  'polling',
  'failing',
  'stopped',
  'held',
  'budget_spent',
  'queues_full',
  'redis_down',
] as const
export type SourceStateLabel = (typeof sourceStates)[number]
/** Why a poll was made at its time: the reasons of `DecisionReason`. */
export const pollReasons = [
  'first',
  'fixed',
  'even',
  'expected',
  'burst',
  'floor',
  'ceiling',
  'announced',
  'mark',
  'hot',
  'catch_up',
  'retry',
  'budget_spent',
] as const
export const findingLevels = ['warning', 'failed'] as const
export type Purpose = (typeof purposes)[number]
export const contextResults = ['bought', 'cached', 'skipped', 'failed'] as const
export type ContextResult = (typeof contextResults)[number]
export type SendResult = (typeof sendResults)[number]

/** Remembers for each bucket the last alert in it, `SOURCE.ID`. The library takes other arguments than without exemplars. */
type Exemplified<L extends string> = Omit<Histogram<L>, 'observe'> & {
  observe(data: {
    readonly labels: Readonly<Record<L, string>>
    readonly value: number
    readonly exemplarLabels: { readonly alert: string }
  }): void
}

export function createMetrics(build: { version: string; node: string }, tracer?: Tracer) {
  const registry = new Registry()
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name: `alert_bridge_${name}`, help, labelNames, registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Gauge({ name: `alert_bridge_${name}`, help, labelNames, registers })
  const histogram = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets: number[],
  ) => new Histogram({ name: `alert_bridge_${name}`, help, labelNames, buckets, registers })
  const exemplified = <L extends string>(
    ...[name, help, labelNames, buckets]: Parameters<typeof histogram<L>>
  ) => {
    const options = { name: `alert_bridge_${name}`, help, labelNames, buckets, registers: [] }
    const made = new Histogram({ ...options, enableExemplars: true })
    // Only here: the library's constructor refuses a registry of the format that leaves exemplars out.
    registry.registerMetric(made)
    return made as unknown as Exemplified<L>
  }

  const buildInfo = gauge('build_info', 'The running build; always 1.', ['version', 'node'])
  buildInfo.set(build, 1)
  collectDefaultMetrics({ register: registry })
  // prom-client names these gauges like counters, which `promtool check metrics` refuses.
  for (const kind of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${kind}_total`)

  return {
    registry,
    /** Where the config asks for traces: what is measured of an alert becomes a span too. */
    tracer,
    /** The names whose series exist. */
    initialised: { sources: new Set<string>(), sinks: new Set<string>() },
    configReloaded: gauge(
      'config_reload_success_timestamp_seconds',
      'When the config in force was read: at the start, or by the last reload that was not refused.',
      [],
    ),
    configReloadSuccessful: gauge(
      'config_last_reload_successful',
      '0 when the last reload was refused, and the config before it goes on; else 1.',
      [],
    ),
    configHash: gauge(
      'config_hash',
      'A short hash of the config in force, without secrets, http, dataDir and log: replicas whose hashes differ have different configs.',
      [],
    ),
    ready: gauge('ready', '1 while this process can do its work, as /readyz says; else 0.', []),
    findings: gauge('findings', 'How many things the status page says are wrong, by level.', ['level']),
    upstreamRequests: counter(
      'upstream_requests_total',
      'Calls of this process to the Market Data Read API by HTTP status, or error when none came.',
      ['source', 'endpoint', 'status'],
    ),
    upstreamRequestDuration: histogram(
      'upstream_request_duration_seconds',
      'Duration of calls to the Market Data Read API.',
      ['source', 'endpoint'],
      exchangeBuckets,
    ),
    upstreamRateLimited: counter('upstream_rate_limited_total', '429 answers, by the limit that was hit.', [
      'source',
      'limit',
    ]),
    budgetUnitsLimit: gauge('budget_units_limit', 'Units that may be spent a budget day.', ['source']),
    budgetUnitsLearned: gauge(
      'budget_units_learned',
      'Units a day that the plan is made with: fewer than the limit once the API refused a call before the limit was reached.',
      ['source'],
    ),
    budgetUnitsUsed: gauge(
      'budget_units_used',
      'Units spent in the current budget day, over all replicas and by the command api.',
      ['source'],
    ),
    budgetUnits: counter('budget_units_total', 'Units spent by this process, by purpose.', [
      'source',
      'purpose',
    ]),
    budgetReset: gauge('budget_reset_timestamp_seconds', 'When the current budget day ends.', ['source']),
    lastPoll: gauge('last_poll_timestamp_seconds', 'When the last successful poll ended.', ['source']),
    nextPoll: gauge('next_poll_timestamp_seconds', 'When the next poll is planned.', ['source']),
    pollOverdue: gauge(
      'poll_overdue_seconds',
      'By how much the planned poll is late, by the clock of the process that polls; 0 up to a minute, and up to an hour while it catches up.',
      ['source'],
    ),
    polls: counter('polls_total', 'Polls by the reason for which they were made at their time.', [
      'source',
      'reason',
    ]),
    sourceState: gauge(
      'source_state',
      '1 for what a source does now: polling, failing (for a quarter of an hour), stopped (a person must act), held (by a 429), budget_spent, queues_full or redis_down; else 0.',
      ['source', 'state'],
    ),
    planLearned: gauge(
      'plan_learned_alerts',
      'Alerts that the plan was learned from, old ones counting for less.',
      ['source'],
    ),
    planOnMarks: gauge(
      'plan_on_marks',
      '1 while polls are timed by the recurring instants at which the alert engine fires.',
      ['source'],
    ),
    planOnAnnounced: gauge(
      'plan_on_announced',
      '1 while polls are timed by the rule evaluations that the API announces.',
      ['source'],
    ),
    rulesSilent: gauge('rules_silent', 'Alert rules that may not fire, as they were last read.', ['source']),
    lastCompleteWalk: gauge(
      'last_complete_walk_timestamp_seconds',
      'When everything the feed showed was last known to be handled.',
      ['source'],
    ),
    feedGap: counter('feed_gap_total', 'Times the feed changed in a way that new rows do not explain.', [
      'source',
    ]),
    stateLost: counter(
      'state_lost_total',
      'Times that the stored walk of a source vanished from Redis while the process ran.',
      ['source'],
    ),
    pollerRestarts: counter(
      'poller_restarts_total',
      'Times the polling loop of a source failed by a bug and was started again.',
      ['source'],
    ),
    detectionLag: exemplified(
      'detection_lag_seconds',
      'Time from firedAt until a poll read the alert; not of history, which fired before the source was set up.',
      ['source'],
      lagBuckets,
    ),
    deliveryLag: exemplified(
      'delivery_lag_seconds',
      'Time from firedAt until the sink acknowledged the alert; for an alert that an operator sends again, from that request. Not of history.',
      ['source', 'sink'],
      lagBuckets,
    ),
    alertsSeen: counter(
      'alerts_seen_total',
      'New alerts: put into queues, held back, or matched by no route.',
      ['source'],
    ),
    alertsDuplicate: counter(
      'alerts_duplicate_total',
      'Rows that polls read again although they were handled before.',
      ['source'],
    ),
    alertsQuarantined: counter(
      'alerts_quarantined_total',
      'Rows quarantined because they could not be parsed.',
      ['source'],
    ),
    quarantineFellOut: counter(
      'quarantine_fell_out_total',
      'Rows whose copy was removed from the quarantine because it was full.',
      ['source'],
    ),
    alertsUnrouted: counter('alerts_unrouted_total', 'Alerts that no route names a sink for.', ['source']),
    alertsHeld: counter(
      'alerts_held_total',
      'Alerts that matched a route and were held back from at least one sink, by reason.',
      ['source', 'reason'],
    ),
    sends: counter(
      'sends_total',
      'Attempts by result; also alerts that were given up on without an attempt (expired, dead).',
      ['sink', 'result'],
    ),
    sendDuration: exemplified('send_duration_seconds', 'Duration of attempts.', ['sink'], exchangeBuckets),
    queueJobs: gauge(
      'queue_jobs',
      'Jobs in the queue by state; the same from every replica: aggregate with max. Left out while Redis does not answer.',
      ['sink', 'state'],
    ),
    deadLetters: gauge(
      'dead_letters',
      'Jobs that were given up on; the same from every replica: aggregate with max. Left out while Redis does not answer.',
      ['sink'],
    ),
    orphanedJobs: gauge(
      'orphaned_jobs',
      'Alerts and dead letters left of a sink that is not in the config; the same from every replica: aggregate with max. Left out while Redis does not answer.',
      ['sink'],
    ),
    context: counter(
      'context_total',
      "Context that alerts asked for, by name and result: bought by a call, known already (cached), left out for a reason, also since it would have come too late for its alert (skipped), or the API's answer was late, faulty or too large (failed).",
      ['source', 'what', 'result'],
    ),
    circuitOpen: gauge(
      'circuit_open',
      '1 while the breaker of the sink is open: its alerts wait, and a few are sent as probes.',
      ['sink'],
    ),
    sinkPaused: gauge(
      'sink_paused',
      '1 while an operator has paused the sink, also while Redis does not answer; the same from every replica: aggregate with max.',
      ['sink'],
    ),
    sinkDigest: gauge(
      'sink_digest_seconds',
      'For how long the sink gathers alerts to send them together (digest); 0 where each is sent at once.',
      ['sink'],
    ),
    sinkRecipients: gauge(
      'sink_recipients',
      'How many deliveries each alert of the sink is, of which each counts in what is sent, late or dead: one a recipient of mail, else 1.',
      ['sink'],
    ),
    sinkStuck: gauge(
      'sink_stuck',
      '1 while alerts of the sink wait and this process (or, where it does not send, any) takes none, though nothing holds them back.',
      ['sink'],
    ),
  }
}
