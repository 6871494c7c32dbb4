import type { Clock } from '../../lib/clock.ts'
import { oldestFirst } from '../../sinks/pack.ts'
import type { Batch } from '../../sinks/sink.ts'
import { createMessageLimiter, type MessageLimiter, type MessageLimits } from './limiter.ts'
import {
  type Member,
  type MemberResult,
  Messenger,
  type MessengerOptions,
  type PendingMember,
  type Send,
} from './messenger.ts'

/**
 * Puts jobs that this process has taken at the same time into one message. The first job of a group waits here, with its
 * lock renewed, until the group is full or its time is over. Then the group becomes one message, or as many as its text
 * needs. Groups are only in memory: after a crash every job of the group is still in the queue and is sent again.
 */
interface BatcherOptions {
  readonly batch: Batch
  readonly limits: MessageLimits
  readonly clock: Clock
  readonly send: Send
  /** While the sink is down, alerts are sent one at a time to probe it: none waits for a group. */
  isOpen(): boolean
  refused: MessengerOptions['refused']
  /** A fault of this program: the alerts of a group could not be divided into messages, and go out one by one. */
  splitFailed(error: unknown): void
}

interface Group {
  readonly waiting: Set<PendingMember>
  /** By the monotonic clock: it is open no longer than this. */
  limitMs: number
  timer: NodeJS.Timeout
}

/** A digest is sent when no further alert has joined it for so long. */
const quietMs = 1_500
/** How long a digest is open at most: longer than any alert waits for its context. */
const digestWaitMsMax = 12_000

export class Batcher {
  readonly #options: BatcherOptions
  readonly #messenger: Messenger
  readonly #limiter: MessageLimiter
  /** By target. */
  readonly #groups = new Map<string, Group>()
  /** How many alerts of each target are about to join. */
  readonly #expected = new Map<string, number>()
  /** When alerts went out on their own. */
  #alone: number[] = []
  readonly #stopping = new AbortController()

  /** `before` is the sink's batcher until its config changed. */
  constructor(options: BatcherOptions, before?: Batcher) {
    this.#options = options
    const { limits, clock } = options
    this.#limiter = createMessageLimiter(limits, clock, before === undefined ? undefined : before.#limiter)
    this.#messenger = new Messenger({ ...options, limiter: this.#limiter, stopping: this.#stopping.signal })
  }

  /** Returns `context`, which an alert waits for before it joins; until then the digest of its target stays open. */
  async expect<T>(target: string | undefined, context: Promise<T>): Promise<T> {
    this.#countExpected(target, 1)
    return context.finally(() => this.#countExpected(target, -1))
  }

  #countExpected(target = '', by: number): void {
    this.#expected.set(target, (this.#expected.get(target) ?? 0) + by)
  }

  /** Resolves when the send that this member was part of is over. */
  join(member: Member): Promise<MemberResult> {
    return new Promise((resolve) => {
      const waiting = { ...member, isProbe: this.#options.isOpen(), resolve }
      if (this.#goesAlone(member)) void this.#messenger.deliver([waiting])
      else this.#wait(waiting)
    })
  }

  /**
   * Groups that are open are sent now, unless they have to wait for their turn. Everything else goes back to the queue, also
   * the messages after one that is being sent: a stop waits for one send, not for a second.
   */
  stop(): void {
    for (const target of [...this.#groups.keys()]) this.#close(target)
    this.#stopping.abort(new Error('stopping'))
  }

  #goesAlone({ target = '', number, isLast }: Member): boolean {
    const { batch, clock, isOpen } = this.#options
    const { plan } = batch
    if (this.#stopping.signal.aborted || isOpen() || (isLast && number > 1)) return true
    if (plan.kind === 'digest' || this.#groups.has(target)) return false
    const nowMs = clock.monotonicMs()
    this.#alone = this.#alone.filter((atMs) => atMs > nowMs - plan.windowMs)
    if (this.#alone.length >= plan.after) return false
    this.#alone.push(nowMs)
    return true
  }

  #wait(waiting: PendingMember): void {
    const { batch, clock } = this.#options
    const { plan } = batch
    const target = waiting.target ?? ''
    const nowMs = clock.monotonicMs()
    const group = this.#groups.get(target) ?? {
      waiting: new Set(),
      limitMs: nowMs + (plan.kind === 'burst' ? plan.windowMs : digestWaitMsMax),
      timer: setTimeout(() => {}, 0),
    }
    this.#groups.set(target, group)
    group.waiting.add(waiting)
    group.limitMs = Math.min(group.limitMs, nowMs + waiting.waitMsMax)
    this.#closeLater(target, group)
    waiting.signal.addEventListener('abort', () => this.#leave(group, waiting), { once: true })
    if (waiting.signal.aborted) this.#leave(group, waiting)
    if (group.waiting.size >= plan.max) this.#close(target)
  }

  #closeLater(target: string, group: Group): void {
    const { plan } = this.#options.batch
    const nowMs = this.#options.clock.monotonicMs()
    const { limitMs } = group
    const endMs = plan.kind === 'burst' ? limitMs : Math.min(nowMs + quietMs, limitMs)
    clearTimeout(group.timer)
    group.timer = setTimeout(
      () => {
        if (endMs < limitMs && (this.#expected.get(target) ?? 0) > 0) this.#closeLater(target, group)
        else this.#close(target)
      },
      Math.max(0, endMs - nowMs),
    )
  }

  #leave(group: Group, waiting: PendingMember): void {
    if (group.waiting.delete(waiting)) waiting.resolve({ step: 'not_ours' })
  }

  #close(target: string): void {
    const group = this.#groups.get(target)
    if (group === undefined) return
    this.#groups.delete(target)
    clearTimeout(group.timer)
    const members = [...group.waiting]
    group.waiting.clear()
    if (members.length > 0) void this.#deliver(members)
  }

  /** One message after the other, so that the receiver gets the oldest alerts first. */
  async #deliver(members: readonly PendingMember[]): Promise<void> {
    for (const message of this.#split(members)) await this.#messenger.deliver(message)
  }

  /** One alert whose text cannot be made must not keep the others: where it goes alone, the fault is its own. */
  #split(members: readonly PendingMember[]): PendingMember[][] {
    const { batch, splitFailed } = this.#options
    try {
      return batch.split(members)
    } catch (error) {
      splitFailed(error)
      return oldestFirst(members).map((member) => [member])
    }
  }
}
