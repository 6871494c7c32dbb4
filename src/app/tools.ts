import type { StatusFacts } from '../admin/views/status-view.ts'
import type { Tuning } from '../delivery/settings.ts'
import type { ProcessState } from '../intake/poll-types.ts'
import type { Clock } from '../lib/clock.ts'
import type { Drawer } from '../sinks/chart/drawer.ts'
import type { RedisPair } from '../store/connection/redis.ts'
import type { KnownUnits } from '../store/ledger/known-units.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Role } from './roles.ts'

/** What the app gives to a runtime, which passes it to its parts. */
export interface RuntimeTools {
  readonly redis: RedisPair
  readonly log: Logger
  readonly role: Role
  readonly clock: Clock
  readonly metrics: Metrics
  /** Of the charts in messages. */
  readonly drawer: Drawer
  /** What this process stores of each source, kept over reloads. From it a loss of Redis differs from a first start. */
  readonly processStates: Map<string, ProcessState>
  /** Kept over reloads too. */
  readonly knownUnits: KnownUnits
  /** Of this process. */
  readonly refusedReload?: () => StatusFacts['refusedReload']
  readonly operatorsLookEveryMs?: number
  readonly senderTuning?: Partial<Tuning>
}
