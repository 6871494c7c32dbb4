import type { Alert } from '../alert/alert.ts'
import type { DeliveryQueues } from './ports.ts'

/** What a page needs to become jobs. */
export interface IntakeDeps {
  readonly queues: DeliveryQueues
  /** Names of the sinks that the routes give this alert to; none is a decision too (it is counted as unrouted). */
  readonly route: (alert: Alert) => readonly string[]
  /** The targets of a sink, each a job of its own (email: its recipients); `[undefined]` for a sink with a single one. */
  readonly targetsOf: (sink: string) => readonly (string | undefined)[]
}
