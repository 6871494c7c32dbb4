import { formatDuration } from '../lib/duration.ts'
import { createAcknowledged } from './acknowledgement/acknowledged.ts'
import { Unrecorded } from './acknowledgement/unrecorded.ts'
import { Lane, type LaneOptions, type LaneState } from './lane/lane.ts'
import { LaneLooks } from './lane/looks.ts'
import { defaultTuning, type SinkEntry, type Tuning } from './settings.ts'

export type { BreakerChange } from './circuit/circuit.ts'
export type { LaneState } from './lane/lane.ts'

/** The sink side of the queues: one lane a sink, each on its own. */
export interface Sender {
  /** Returns at once; the lanes wait for Redis themselves. `sends: false`: only looks whether others send. */
  start(role?: { readonly sends: boolean }): void
  /**
   * Replaces the sinks. The lane of a sink whose entry is the same object continues unchanged; the other lanes take no
   * more jobs. Resolves when those have ended their sends, each within its own time, and are closed.
   */
  swap(sinks: ReadonlyMap<string, SinkEntry>): Promise<void>
  /** Takes no more jobs, and waits for the sends that run. Within `stopMsMax`, whatever Redis and the sinks do. */
  stop(deadlineMs?: number): Promise<void>
  /** How long `stop` may take at most. */
  stopMsMax(): number
  /** Sends one alert now to a sink whose breaker is open, without waiting for the next probe. A UserError when it is not open. */
  probe(sink: string): Promise<boolean>
  /** As this process sees its lanes. */
  states(): LaneState[]
  /** Names of lanes that only wait for their last sends. */
  ending(): string[]
}

export interface SenderOptions
  extends Omit<LaneOptions, keyof SinkEntry | 'acknowledged' | 'unrecorded' | 'looks' | 'tuning'> {
  readonly sinks: ReadonlyMap<string, SinkEntry>
  readonly tuning?: Partial<Tuning>
}

export function createSender(options: SenderOptions): Sender {
  return new Lanes(options)
}

class Lanes implements Sender {
  readonly #options: SenderOptions
  readonly #acknowledged = createAcknowledged()
  readonly #unrecorded: Unrecorded
  readonly #tuning: Tuning
  readonly #looks: LaneLooks
  readonly #lanes = new Map<string, { readonly entry: SinkEntry; readonly lane: Lane }>()
  /** Lanes that only wait for their last sends, each until it has stopped. */
  readonly #ending = new Map<Lane, Promise<void>>()
  #started: { readonly sends: boolean } | undefined

  constructor(options: SenderOptions) {
    this.#options = options
    this.#unrecorded = new Unrecorded(options.clock)
    this.#tuning = { ...defaultTuning, ...options.tuning }
    this.#looks = new LaneLooks({ ...options, everyMs: this.#tuning.watchEveryMs })
    void this.swap(options.sinks)
  }

  start(role: { readonly sends: boolean } = { sends: true }): void {
    this.#started = role
    for (const { lane } of this.#lanes.values()) lane.start(role)
  }

  async swap(sinks: ReadonlyMap<string, SinkEntry>): Promise<void> {
    const gone = [...this.#lanes].filter(([name, { entry }]) => sinks.get(name) !== entry)
    const before = new Map(gone.map(([name, { lane }]) => [name, lane]))
    for (const [name, { lane }] of gone) {
      this.#lanes.delete(name)
      this.#end(name, lane)
    }
    this.#logWaiting([...before])
    for (const [name, entry] of sinks) {
      if (this.#lanes.has(name)) continue
      const lane = this.#createLane(entry, before.get(name) ?? this.#endingOf(name))
      this.#lanes.set(name, { entry, lane })
      if (this.#started) lane.start(this.#started)
    }
    await Promise.all([...before.values()].map((lane) => this.#ending.get(lane)))
  }

  async stop(deadlineMs?: number): Promise<void> {
    const lanes = [...this.#lanes].map(([name, { lane }]): [string, Lane] => [name, lane])
    for (const [name, lane] of lanes) this.#end(name, lane, deadlineMs)
    this.#lanes.clear()
    this.#logWaiting([...this.#ending.keys()].map((lane) => [lane.state().sink, lane]))
    await Promise.all(this.#ending.values())
    this.#unrecorded.stop()
  }

  stopMsMax(): number {
    const lanes = [...[...this.#lanes.values()].map(({ lane }) => lane), ...this.#ending.keys()]
    return Math.max(0, ...lanes.map((lane) => lane.stopMsMax))
  }

  async probe(sink: string): Promise<boolean> {
    const lane = this.#lanes.get(sink)?.lane
    await lane?.probe()
    return lane !== undefined
  }

  ending(): string[] {
    return [...this.#ending.keys()].map((lane) => lane.state().sink)
  }

  states(): LaneState[] {
    return [...this.#lanes.values()].map(({ lane }) => lane.state())
  }

  #createLane(entry: SinkEntry, before: Lane | undefined): Lane {
    const { sinks: _, ...common } = this.#options
    const shared = {
      acknowledged: this.#acknowledged,
      unrecorded: this.#unrecorded,
      looks: this.#looks,
      tuning: this.#tuning,
    }
    return new Lane({ ...common, ...entry, ...shared }, before)
  }

  #end(name: string, lane: Lane, deadlineMs?: number): void {
    const ended = lane.stop(deadlineMs).finally(() => {
      this.#ending.delete(lane)
      this.#lanes.get(name)?.lane.forget(lane)
      for (const other of this.#ending.keys()) other.forget(lane)
    })
    this.#ending.set(lane, ended)
  }

  /** The last lane of a sink that left the config and came back before its last send was over. */
  #endingOf(name: string): Lane | undefined {
    return [...this.#ending.keys()].findLast((lane) => lane.state().sink === name)
  }

  #logWaiting(ending: readonly (readonly [string, Lane])[]): void {
    const busy = ending.filter(([, { sending }]) => sending > 0)
    if (busy.length === 0) return
    const sends = busy.reduce((sum, [, { sending }]) => sum + sending, 0)
    const atMostMs = Math.max(...busy.map(([, { stopMsMax }]) => stopMsMax))
    this.#options.log.info(
      { sinks: busy.map(([sink]) => sink), sends, atMost: formatDuration(atMostMs) },
      'waiting for the sends that run',
    )
  }
}
