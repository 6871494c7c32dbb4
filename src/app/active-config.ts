import { fingerprintOf } from '../config/fingerprint.ts'
import { publicHashOf } from '../config/redact.ts'
import type { Config } from '../config/schema.ts'
import { createOrphans, type Orphans } from '../delivery/orphans/orphans.ts'
import { createQueues, type SinkQueues } from '../delivery/queue/queues.ts'
import { createDeadLetters, type DeadLetters } from '../delivery/records/dead-letters.ts'
import { createDeliveryLog, type DeliveryLog } from '../delivery/records/delivery-log.ts'
import { createReplay, type Replay } from '../delivery/records/resend.ts'
import type { SinkEntry } from '../delivery/settings.ts'
import type { IntakeDeps } from '../intake/intake.ts'
import { createFiredAlerts, type FiredAlerts } from '../store/fired-alerts.ts'
import { type AuditStore, createAuditStore } from '../store/operators/audit.ts'
import { createIdempotencyStore, type IdempotencyStore } from '../store/operators/idempotency.ts'
import type { NameStore } from '../store/source/names.ts'
import { type BuiltParts, buildParts, valuesOf } from './built-parts.ts'
import { type AlertRouting, createRouting, known, retentionOf } from './routing.ts'
import { buildSinks } from './sinks.ts'
import { createSource, type Source, type SourceTools } from './source/source.ts'

/**
 * One config and all that is built from it. A reload builds the next one and replaces this one by a single assignment, so
 * code that reads it once, for a page or a request, gets routes, sinks and queues that belong together.
 */
export interface ActiveConfig {
  readonly config: Config
  /** See `publicHashOf`. */
  readonly configHash: number
  readonly sinks: BuiltParts<SinkEntry>
  readonly sources: BuiltParts<Source>
  readonly queues: SinkQueues
  readonly routing: AlertRouting
  readonly intake: IntakeDeps
  /** What the sources of this and of later configs handle pages with: a source may be used longer than its config. */
  readonly inForce: { intake: IntakeDeps }
  readonly deliveryLog: DeliveryLog
  readonly deadLetters: DeadLetters
  readonly replay: Replay
  readonly orphans: Orphans
  readonly audit: AuditStore
  readonly fired: FiredAlerts
  readonly idempotency: IdempotencyStore
  /** Of each sink, each with deliveries of its own. */
  readonly targets: IntakeDeps['targets']
}

interface ActiveConfigTools extends Omit<SourceTools, 'prefix' | 'inForce'> {
  readonly names: NameStore
}

/** Keeps the parts of `before` whose config is the same. Throws a UserError when a sink cannot be built. */
export function createActiveConfig(
  config: Config,
  before: ActiveConfig | undefined,
  tools: ActiveConfigTools,
): ActiveConfig {
  const { redis, clock } = tools
  const { prefix } = config.redis
  const sinks = buildSinks(config, before?.sinks, tools.drawer)
  const targets = new Map([...valuesOf(sinks)].map(([name, { sink }]) => [name, sink.targets]))
  const view = { sinks: [...sinks.keys()] }
  const queues = before?.queues.reconfigured(view) ?? createQueues({ redis: redis.commands, prefix, ...view })
  const routing = createRouting(config, tools, (source) => known(sources.get(source)?.value.rules, source))
  const { prepareAssign, onHandled } = routing
  const intake: IntakeDeps = { queues, prepareAssign, targets, onHandled }
  const inForce = before?.inForce ?? { intake }
  const sources = buildParts(Object.entries(config.sources), before?.sources ?? new Map(), {
    fingerprint: (name) => fingerprintOf(config, 'sources', name),
    build: (name, source) => createSource(name, source, { ...tools, prefix, inForce }),
  })
  const orphans = createOrphans({
    queues,
    targets,
    clock,
    prefix,
    names: tools.names,
    retention: retentionOf(config),
  })
  return {
    configHash: publicHashOf(config),
    config,
    sinks,
    sources,
    queues,
    routing,
    targets,
    intake,
    inForce,
    deliveryLog: createDeliveryLog({ queues, targets, orphans: () => orphans.names() }),
    deadLetters: createDeadLetters({ queues, targets, clock }),
    replay: createReplay({ queues, targets, clock }),
    orphans,
    fired: createFiredAlerts({ redis: redis.commands, prefix }),
    idempotency: createIdempotencyStore({ redis: redis.commands, prefix }),
    audit: createAuditStore({ redis: redis.commands, prefix }),
  }
}
