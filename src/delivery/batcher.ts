import type { Clock } from '../lib/clock.ts'
import type { Outcome } from '../sinks/outcome.ts'
import type { Batch, Parcel } from '../sinks/sink.ts'
import { createPace, type Pace } from './pace.ts'

/**
 * Puts jobs that are in hand at the same time into one message. A job that opens a group waits here, its lock renewed
 * as ever, until the group is full or its time is over; then all of it makes one send and shares one outcome, or as many
 * as the sink needs to say all of it, each with an outcome of its own. Nothing of this is kept anywhere: a crash leaves every job of the group in the queue, unacknowledged, and repeats it.
 */
export interface Member extends Parcel {
  readonly target?: string
  readonly number: number
  readonly signal: AbortSignal
  /** Asked right before the send: the job is still ours and still worth sending. */
  ready(): Promise<boolean>
}

export type Sent =
  | {
      readonly step: 'sent'
      readonly outcome: Outcome
      readonly startedAtMs: number
      readonly durationMs: number
      /** Of those that shared the send, one tells the circuit of it. */
      readonly leads: boolean
      /** The same for all that shared the send, so that what is tried again comes back together. */
      readonly random: () => number
    }
  | { readonly step: 'not_ours' }

/** One send of one or several members; never throws. */
export type Send = (members: readonly Member[], signal: AbortSignal) => Promise<Outcome>

export interface BatcherOptions {
  readonly batch: Batch
  readonly rateLimit: { readonly max: number; readonly perMs: number } | undefined
  readonly clock: Clock
  readonly send: Send
  /** While the sink is down, one alert at a time probes it: nothing waits for company. */
  isOpen(): boolean
}

interface Waiting extends Member {
  readonly resolve: (sent: Sent) => void
}

interface Group {
  readonly waiting: Set<Waiting>
  readonly openedAtMs: number
  timer: NodeJS.Timeout
}

/** A digest waits for the next alert so long, and never longer than this in all. */
const quietMs = 1_500
const digestWaitMsMax = 8_000

export class Batcher {
  readonly #options: BatcherOptions
  readonly #pace: Pace
  /** By target. */
  readonly #groups = new Map<string, Group>()
  /** When alerts went out on their own. */
  #alone: number[] = []
  readonly #stopping = new AbortController()

  constructor(options: BatcherOptions) {
    this.#options = options
    this.#pace = createPace(options.rateLimit, options.clock)
  }

  /** Resolves when the send that this member was part of is over. */
  join(member: Member): Promise<Sent> {
    return new Promise((resolve) => {
      const waiting = { ...member, resolve }
      if (this.#goesAlone(member.target ?? '')) void this.#dispatch([waiting])
      else this.#wait(waiting)
    })
  }

  /** What waits for company goes out now; what waits for its turn goes back, and nothing begins a second time. */
  stop(): void {
    this.#stopping.abort(new Error('stopping'))
    for (const target of [...this.#groups.keys()]) this.#close(target)
  }

  #goesAlone(target: string): boolean {
    const { batch, clock, isOpen } = this.#options
    const { plan } = batch
    if (this.#stopping.signal.aborted || isOpen()) return true
    if (plan.kind === 'digest' || this.#groups.has(target)) return false
    const nowMs = clock.monotonicMs()
    this.#alone = this.#alone.filter((atMs) => atMs > nowMs - plan.windowMs)
    if (this.#alone.length >= plan.after) return false
    this.#alone.push(nowMs)
    return true
  }

  #wait(waiting: Waiting): void {
    const { batch, clock } = this.#options
    const { plan } = batch
    const target = waiting.target ?? ''
    const nowMs = clock.monotonicMs()
    const group = this.#groups.get(target) ?? {
      waiting: new Set(),
      openedAtMs: nowMs,
      timer: setTimeout(() => {}, 0),
    }
    this.#groups.set(target, group)
    group.waiting.add(waiting)
    const endMs =
      plan.kind === 'burst'
        ? group.openedAtMs + plan.windowMs
        : Math.min(nowMs + quietMs, group.openedAtMs + digestWaitMsMax)
    clearTimeout(group.timer)
    group.timer = setTimeout(() => this.#close(target), Math.max(0, endMs - nowMs))
    waiting.signal.addEventListener('abort', () => this.#leave(group, waiting), { once: true })
    if (waiting.signal.aborted) this.#leave(group, waiting)
    if (group.waiting.size >= plan.max) this.#close(target)
  }

  #leave(group: Group, waiting: Waiting): void {
    if (group.waiting.delete(waiting)) waiting.resolve({ step: 'not_ours' })
  }

  #close(target: string): void {
    const group = this.#groups.get(target)
    if (group === undefined) return
    this.#groups.delete(target)
    clearTimeout(group.timer)
    const members = [...group.waiting]
    group.waiting.clear()
    if (members.length > 0) void this.#dispatchSplit(members)
  }

  /** One message after the other, so that they come in the order of what they tell. */
  async #dispatchSplit(members: readonly Waiting[]): Promise<void> {
    for (const message of this.#options.batch.split(members)) await this.#dispatch(message)
  }

  async #dispatch(members: readonly Waiting[]): Promise<void> {
    const calledOff = allAborted(members.map(({ signal }) => signal))
    try {
      await this.#pace.turn(AbortSignal.any([calledOff.signal, this.#stopping.signal]))
    } catch {
      for (const { resolve } of members) resolve({ step: 'not_ours' })
      return
    } finally {
      calledOff.release()
    }
    const ready = await Promise.all(members.map(async (member) => (await member.ready()) && member))
    const going = members.filter((member) => ready.includes(member))
    for (const member of members) if (!going.includes(member)) member.resolve({ step: 'not_ours' })
    if (going.length > 0) await this.#send(going)
  }

  async #send(members: readonly Waiting[]): Promise<void> {
    const { clock, send } = this.#options
    const [startedAtMs, fromMs] = [clock.now(), clock.monotonicMs()]
    const calledOff = allAborted(members.map(({ signal }) => signal))
    const outcome = await send(members, calledOff.signal)
    calledOff.release()
    // It may be one alert alone that cannot be taken: each is tried by itself before any is given up.
    if (members.length > 1 && outcome.kind === 'dead' && !outcome.sinkFault) {
      for (const member of members) {
        if (this.#stopping.signal.aborted) member.resolve({ step: 'not_ours' })
        else await this.#dispatch([member])
      }
      return
    }
    const luck = members.length > 1 ? Math.random() : undefined
    const durationMs = Math.round(clock.monotonicMs() - fromMs)
    for (const [index, { resolve }] of members.entries())
      resolve({
        step: 'sent',
        outcome,
        startedAtMs,
        durationMs,
        leads: index === 0,
        random: () => luck ?? Math.random(),
      })
  }
}

/** Aborts once every one of them has: a send goes on while anybody waits for it. */
function allAborted(signals: readonly AbortSignal[]): { signal: AbortSignal; release(): void } {
  const controller = new AbortController()
  const check = () => {
    if (signals.every(({ aborted }) => aborted)) controller.abort(new Error('called off'))
  }
  for (const signal of signals) signal.addEventListener('abort', check, { once: true })
  check()
  return {
    signal: controller.signal,
    release() {
      for (const signal of signals) signal.removeEventListener('abort', check)
    },
  }
}
