import type { SandboxToken, TokenState } from './decide-call.ts'
import type { Fault } from './faults.ts'
import type { DeliveryRow, RuleRow } from './rows.ts'

/**
 * The Market Data Read API with synthetic data, over real HTTP: for the demo, for tests and for
 * integrators. It keeps to the documented API, and breaks it only where a fault was declared.
 */
export interface Sandbox {
  /** Listens and begins to fire. A sandbox that was stopped comes back at the same port, with its rows. */
  start(): Promise<{ readonly url: string; readonly controlUrl?: string }>
  /** Ends every connection, also those that hang. */
  stop(): Promise<void>
  /** A new alert at the head of the feed, now. */
  fire(fields?: Partial<DeliveryRow>): DeliveryRow
  /** Oldest first. */
  fireMany(count: number, fields?: Partial<DeliveryRow>): readonly DeliveryRow[]
  /** Puts a row, good or bad, where it stands at `atIndex` from the newest (0). */
  insert(row: unknown, atIndex: number): void
  /** A synthetic row with an id of its own that stands in no feed yet: what `insert` may take. */
  makeRow(fields?: Partial<DeliveryRow>): DeliveryRow
  remove(id: number): boolean
  /** The rows of the feed, newest first; those without the documented identity are left out. */
  readonly rows: readonly DeliveryRow[]
  readonly rules: readonly RuleRow[]
  /** Every call so far, oldest first. */
  readonly requests: readonly SandboxRequest[]
  /** Units charged since the last reset. */
  readonly unitsUsed: number
  fault(fault: Fault): void
  readonly faults: readonly Fault[]
  clearFaults(): void
  /** Makes a token, or changes what is given of one that there is. */
  setToken(token: SandboxToken): void
  /** Changes one token's state, or that of all of them. */
  setTokenState(state: TokenState, value?: string): void
  /** From now on the tokens show the feed of account `name`, which is made, with its own ids from 1, when it is new. */
  switchAccount(name: string, history?: number): void
  setRate(perMinute: number): void
  stopFiring(): void
  /** Returns how to stop listening. */
  on(event: 'fired', listener: (row: DeliveryRow) => void): () => void
  on(event: 'request', listener: (request: SandboxRequest) => void): () => void
}

export interface SandboxRequest {
  readonly atMs: number
  readonly method: string
  readonly path: string
  /** null where none was given or it could not be read. */
  readonly page: number | null
  /** null as long as no status was sent. */
  readonly status: number | null
  readonly units: number
  readonly faults: readonly Fault['kind'][]
}
