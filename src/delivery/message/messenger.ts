import type { Clock } from '../../lib/clock.ts'
import type { Outcome } from '../../sinks/outcome.ts'
import type { Parcel } from '../../sinks/sink.ts'
import { faultText, mayBeItsContent, signalOf } from '../attempt/follow-up.ts'
import type { BreakerEvent } from '../circuit/breaker.ts'
import type { MessageLimiter } from './limiter.ts'

/**
 * Sends the alerts of one message, and finds out which of them the sink cannot accept: a refused message is sent again in
 * smaller ones, down to single alerts, unless the sink itself is at fault. An alert whose last attempt this is goes
 * alone, so that no alert is given up on because of another one in the same message.
 */
export interface Member extends Parcel {
  readonly target?: string
  readonly number: number
  /** If this attempt fails, there is no other. */
  readonly isLast: boolean
  /** How long it may wait for others at most, so that it goes out before it expires. */
  readonly waitMsMax: number
  readonly signal: AbortSignal
  /** Asked right before the send: the job is still ours and still worth sending. */
  ready(): Promise<boolean>
}

export type MemberResult =
  | {
      readonly step: 'sent'
      readonly outcome: Outcome
      readonly startedAtMs: number
      readonly durationMs: number
      /** Of those that shared the send, only one reports it to the circuit. */
      readonly reportsToCircuit: boolean
      /** Several alerts were in the message. */
      readonly isShared: boolean
      /** The same for all that shared the send, so that what is tried again comes back together. */
      readonly random: () => number
    }
  | { readonly step: 'not_ours' }

export interface PendingMember extends Member {
  /** It was taken while the sink was known to be down, to find out whether it still is. */
  readonly isProbe: boolean
  readonly resolve: (sent: MemberResult) => void
}

/** One send of one or several members; never throws. */
export type Send = (members: readonly Member[], signal: AbortSignal) => Promise<Outcome>

export interface MessengerOptions {
  readonly limiter: MessageLimiter
  readonly clock: Clock
  readonly send: Send
  /** Once aborted, no send begins, and members that wait for their turn go back to the queue. */
  readonly stopping: AbortSignal
  /** The sink is down. */
  isOpen(): boolean
  /** A message was refused and all its alerts are sent again at once: so no member reports it to the circuit. */
  refused(sent: SentMessage): void
}

export class Messenger {
  readonly #options: MessengerOptions

  constructor(options: MessengerOptions) {
    this.#options = options
  }

  /** Resolves each member as soon as it is known what becomes of it. */
  async deliver(message: readonly PendingMember[]): Promise<void> {
    const left = [message]
    let faultsInARow = 0
    let refused: SentMessage | undefined
    for (let part = left.shift(); part; part = left.shift()) {
      if (refused && (faultsInARow >= faultsMax || this.#options.isOpen())) {
        // The sink is at fault, not one of the alerts: the rest gets the same outcome.
        const [last, others] = divide(part, ({ isLast }) => isLast)
        settle(others, refused, false)
        if (last.length !== 1) {
          left.unshift(...last.map((member) => [member]))
          continue
        }
        part = last
      }
      const sent = await this.#try(part, refused !== undefined)
      if (sent === undefined) continue
      const { members, outcome } = sent
      if (outcome.kind === 'retry') refused = sent
      faultsInARow = outcome.kind === 'retry' ? faultsInARow + 1 : 0
      const again = partsToRepeat(members, outcome)
      left.unshift(...again)
      const repeated = new Set(again.flat())
      const [, settled] = divide(members, (member) => repeated.has(member))
      settle(settled, sent, true)
      if (settled.length === 0) this.#options.refused(sent)
    }
  }

  /** undefined: none of them is ours to send any more, or the sink was found down while they waited for their turn. */
  async #try(part: readonly PendingMember[], isAgain: boolean): Promise<SentMessage | undefined> {
    const { limiter, stopping, isOpen } = this.#options
    const calledOff = allAborted(part.map(({ signal }) => signal))
    let over: () => void
    try {
      stopping.throwIfAborted()
      over = await limiter.turn(AbortSignal.any([calledOff.signal, stopping]))
    } catch {
      return putBack(part)
    } finally {
      calledOff.release()
    }
    try {
      if (!isAgain && isOpen() && !part.some(({ isProbe }) => isProbe)) return putBack(part)
      return await this.#send(part)
    } finally {
      // Once its members have reported the outcome to the circuit: because of it, the next message may have to be put back.
      setImmediate(over)
    }
  }

  async #send(part: readonly PendingMember[]): Promise<SentMessage | undefined> {
    const { clock, send } = this.#options
    const ready = await Promise.all(part.map((member) => member.ready()))
    const [members, others] = divide(part, (_member, index) => ready[index] === true)
    putBack(others)
    if (members.length === 0) return undefined
    const sending = allAborted(members.map(({ signal }) => signal))
    const [startedAtMs, fromMs] = [clock.now(), clock.monotonicMs()]
    const outcome = await send(members, sending.signal)
    sending.release()
    const durationMs = Math.round(clock.monotonicMs() - fromMs)
    return { members, outcome, startedAtMs, durationMs, random: Math.random() }
  }
}

/** One send, and what came of it. */
interface SentMessage {
  readonly members: readonly PendingMember[]
  readonly outcome: Outcome
  readonly startedAtMs: number
  readonly durationMs: number
  readonly random: number
}

/** What a message that no member reports means for the sink's breaker. */
export function breakerEventOf({ members, outcome, durationMs }: SentMessage, clock: Clock): BreakerEvent {
  const [alert] = members.map(({ alert: { source, id } }) => `${source}.${id}`)
  return {
    signal: signalOf(outcome),
    alert: alert ?? '',
    reason: faultText(outcome),
    startedAtMs: clock.monotonicMs() - durationMs,
  }
}

/** Faults in a row, over ever smaller messages, that are the sink's own. */
const faultsMax = 5
/** A message of sixty is down to single alerts in three steps. */
const parts = 4

/** Which members of a refused message are sent again at once, in smaller messages. */
function partsToRepeat(members: readonly PendingMember[], outcome: Outcome): (readonly PendingMember[])[] {
  if (members.length === 1 || outcome.kind === 'delivered') return []
  if (mayBeItsContent(outcome)) return partsOf(members)
  const burns = outcome.kind === 'retry' && outcome.reason !== 'aborted' && outcome.afterMs === undefined
  return burns ? members.filter(({ isLast }) => isLast).map((member) => [member]) : []
}

/** At random: if the sink cannot accept several of them, they are not put together with the same others each time. */
function partsOf(members: readonly PendingMember[]): (readonly PendingMember[])[] {
  const mixed = members
    .map((member) => ({ member, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ member }) => member)
  const size = Math.ceil(mixed.length / parts)
  return Array.from({ length: Math.ceil(mixed.length / size) }, (_, index) =>
    mixed.slice(index * size, (index + 1) * size),
  )
}

function putBack(members: readonly PendingMember[]): undefined {
  for (const { resolve } of members) resolve({ step: 'not_ours' })
}

function settle(members: readonly PendingMember[], sent: SentMessage, isReported: boolean): void {
  const { outcome, startedAtMs, durationMs, random: shared } = sent
  const isShared = sent.members.length > 1
  const random = isShared ? () => shared : Math.random
  for (const [index, { resolve }] of members.entries())
    resolve({
      step: 'sent',
      outcome,
      startedAtMs,
      durationMs,
      reportsToCircuit: isReported && index === 0,
      isShared,
      random,
    })
}

function divide<T>(all: readonly T[], isFirst: (each: T, index: number) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((each, index) => !isFirst(each, index))]
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
