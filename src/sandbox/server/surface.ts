import type { InjectedFault } from '../faults/faults.ts'
import type { ApiDelivery, ApiRule } from '../rows.ts'
import type { SandboxToken, TokenState } from './decide-call.ts'

/**
 * The Market Data Read API with synthetic data, over real HTTP: for the demo, for tests and for
 * integrators. It behaves as the API's document says, except where a fault was declared.
 */
export interface Sandbox {
  /** Listens and begins to fire. A sandbox that was stopped starts again at the same port, with its rows. */
  start(): Promise<{ readonly url: string; readonly controlUrl?: string }>
  /** Ends every connection, also those that wait for an answer. */
  stop(): Promise<void>
  /** A new alert at the head of the feed, now. */
  fire(fields?: Partial<ApiDelivery>): ApiDelivery
  /** Oldest first. */
  fireMany(count: number, fields?: Partial<ApiDelivery>): readonly ApiDelivery[]
  /** Inserts a row, good or bad, at `atIndex` from the newest (0). */
  insert(row: unknown, atIndex: number): void
  /** A synthetic row with an id of its own that is in no feed yet: for `insert`. */
  makeRow(fields?: Partial<ApiDelivery>): ApiDelivery
  remove(id: number): boolean
  /** The rows of the feed, newest first; those without the documented identity are left out. */
  readonly rows: readonly ApiDelivery[]
  readonly rules: readonly ApiRule[]
  /** Changes fields of a rule, which stay so; false when there is none of this id. */
  setRule(id: number, fields: Partial<ApiRule>): boolean
  /** Every call so far, oldest first. */
  readonly requests: readonly SandboxRequest[]
  /** Units charged since the last reset. */
  readonly unitsUsed: number
  fault(fault: InjectedFault): void
  readonly faults: readonly InjectedFault[]
  clearFaults(): void
  /** Creates a token, or changes the given fields of an existing one. */
  setToken(token: SandboxToken): void
  /** Changes one token's state, or that of all of them. */
  setTokenState(state: TokenState, value?: string): void
  /** From now on the tokens show the feed of account `name`, which is created, with its own ids from 1, when it is new. */
  switchAccount(name: string, history?: number): void
  setRate(perMinute: number): void
  stopFiring(): void
  /** Returns a function that removes the listener. */
  on(event: 'fired', listener: (row: ApiDelivery) => void): () => void
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
  readonly faults: readonly InjectedFault['kind'][]
}
