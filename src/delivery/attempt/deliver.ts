import type { AlertContext } from '../../alert/context.ts'
import { type DeliveryJob, fromJobData } from '../../alert/job.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorCode, toError } from '../../lib/errors.ts'
import { TimeLimitError, within } from '../../lib/time-limit.ts'
import type { Outcome } from '../../sinks/outcome.ts'
import { oldestFirst } from '../../sinks/pack.ts'
import { parcelOf } from '../../sinks/sink.ts'
import { abortAlong } from '../../sinks/transport/abort-along.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Acknowledged } from '../acknowledgement/acknowledged.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { Batcher } from '../message/batcher.ts'
import { waitsUntil } from '../message/digest.ts'
import type { Member, MemberResult } from '../message/messenger.ts'
import type { AttemptRecord } from '../queue/attempt-record.ts'
import type { OwnFields } from '../queue/job-fields.ts'
import { replacementsOf } from '../queue/replace-job.ts'
import type { SinkEntry, SinkSettings } from '../settings.ts'
import { expiresAtMs, isLastAttempt } from './follow-up.ts'

/**
 * One job, one attempt at most: from the job's data to the answer of the sink. Sends nothing that cannot be read, is too
 * old, was acknowledged already (by what this process or Redis knows), or belongs to another worker by now. Does not
 * decide what follows, and never throws because of a sink.
 */
export type JobResult =
  | {
      readonly step: 'sent'
      readonly job: DeliveryJob
      readonly name: string
      readonly outcome: Outcome
      /** Of its context: why it went out without. */
      readonly skipped: AlertContext['skipped']
      readonly startedAtMs: number
      readonly durationMs: number
      /** How much earlier than by the alert's own schedule it ended; 0 for one that was due. */
      readonly earlyMs: number
      /** Of the alerts that shared a message, only one reports it to the circuit. */
      readonly reportsToCircuit: boolean
      readonly isShared: boolean
      readonly random: () => number
    }
  /** Its digest is not due yet. */
  | { readonly step: 'waits'; readonly untilMs: number }
  | { readonly step: 'acknowledged_before'; readonly record: AttemptRecord }
  /** It was stored for targets of another kind than those of its sink are now. */
  | { readonly step: 'replaced'; readonly by: readonly DeliveryJob[] }
  | { readonly step: 'expired'; readonly job: DeliveryJob }
  | { readonly step: 'unreadable'; readonly reason: string }
  /** Another worker has it, Redis does not answer, or this process is stopping. */
  | { readonly step: 'not_ours' }

export interface LockedJob {
  readonly id: string
  readonly data: unknown
  /** The attempt that this would be, from 1. */
  readonly number: number
  /** Another process had it, and has ended or lost its connection to Redis; no process has waited for that one yet. */
  readonly takenOver: boolean
  /** Stores that this process has waited for it, so that no later attempt waits again. */
  waited(): Promise<void>
  /**
   * Makes sure of the lock and reads its own fields; undefined when the job is not ours any more. Returns the fields at
   * once where neither needs a question to Redis.
   */
  claim(requestedAtMs: number | undefined): Promise<OwnFields | undefined> | OwnFields
}

interface SendDeps extends SinkEntry {
  readonly clock: Clock
  readonly log: Logger
}

export interface DeliverDeps extends SendDeps {
  readonly acknowledged: Acknowledged
  /** How long a job that was taken over waits for its former process to write down an acknowledgement. */
  readonly takeOverMs: number
  /** The send of this job begins: from now on its receiver may have it. */
  begins(jobId: string): void
  /** Aborts when the lane stops: then no job is taken over. */
  readonly stopping: AbortSignal
  /** What the API's other endpoints know about the alert; undefined where no route asks. */
  readonly findContext?: FindContext | undefined
  /** For the alert that is delivered. */
  queueState(): QueueState
  /** For a sink that takes several alerts as one message. */
  readonly batcher?: Pick<Batcher, 'expect' | 'join'> | undefined
}

/**
 * Ends within its own deadline, and at once when one of the signals aborts; a rejection is a bug. `isFirst`: only then may it
 * spend units.
 */
export type FindContext = (
  job: DeliveryJob,
  options: {
    readonly isFirst: boolean
    /** How long the alert may wait at most, so that it goes out before it expires. */
    readonly waitMsMax: number
    readonly signals: readonly AbortSignal[]
    readonly queue: QueueState
  },
) => Promise<AlertContext | undefined> | undefined

/** What a lane knows of its queue without a clock of another machine. */
export interface QueueState {
  /** By the monotonic clock: the queue was empty then, so that every job taken since came into it later. */
  readonly emptyMs: number
  /** As many jobs as the lane takes at a time run, so that others may wait for one of them. */
  readonly isFull: boolean
}

export async function deliver(job: LockedJob, signal: AbortSignal, deps: DeliverDeps): Promise<JobResult> {
  const { sink, settings, acknowledged, clock } = deps
  const parsed = fromJobData(sink.name, job.data)
  if (!parsed.ok) return { step: 'unreadable', reason: parsed.reason }
  const delivery = parsed.job
  // What an operator asks for again is a delivery of its own.
  const name = `${sink.name}/${job.id}/${delivery.requestedAtMs ?? ''}`
  const record = acknowledged.get(name)
  if (record) return { step: 'acknowledged_before', record }
  if (job.takenOver) {
    const known = await fieldsAfterWait(job, delivery, signal, deps)
    if (known === undefined) return { step: 'not_ours' }
    if (known.acknowledged) return { step: 'acknowledged_before', record: known.acknowledged }
  }
  const by = replacementsOf(delivery, sink.targets)
  if (by !== undefined) return { step: 'replaced', by }
  if (clock.now() >= expiresAtMs(delivery, settings)) return { step: 'expired', job: delivery }
  const untilMs = waitsUntil(delivery, deps, clock.now())
  if (untilMs !== undefined) return { step: 'waits', untilMs }
  if (signal.aborted) return { step: 'not_ours' }
  const lookup = foundFor(
    delivery,
    {
      isFirst: job.number === 1,
      waitMsMax: (expiresAtMs(delivery, settings) - clock.now()) * expiryWaitShare,
      signals: [signal, deps.stopping],
      queue: deps.queueState(),
    },
    deps,
  )
  const found = lookup && (await (deps.batcher?.expect(delivery.target, lookup) ?? lookup))
  const at = { number: job.number, nowMs: clock.now(), expiresAtMs: expiresAtMs(delivery, settings) }
  let fields: OwnFields | undefined
  let readAtMs = 0
  const member: Member = {
    ...delivery,
    ...(found === undefined ? {} : { context: found }),
    number: job.number,
    isLast: isLastAttempt(at, settings),
    waitMsMax: (at.expiresAtMs - at.nowMs) * expiryWaitShare,
    signal,
    // A process that was frozen, or without Redis for a while, may have lost the job without noticing.
    ready: async () => {
      if (signal.aborted) return false
      fields = await claim(job, delivery)
      readAtMs = clock.monotonicMs()
      if (fields === undefined || fields.acknowledged) return false
      if (signal.aborted || clock.now() >= expiresAtMs(delivery, settings)) return false
      deps.begins(job.id)
      return true
    },
  }
  const sent = deps.batcher ? await deps.batcher.join(member) : await sendAlone(member, deps)
  if (fields?.acknowledged) return { step: 'acknowledged_before', record: fields.acknowledged }
  if (sent.step !== 'sent') return sent
  const earlyMs = Math.max(0, (fields?.earlyMs ?? 0) - (clock.monotonicMs() - readAtMs))
  const { outcome } = sent
  const skipped = (outcome.kind === 'delivered' ? outcome.skipped : undefined) ?? found?.skipped ?? []
  return { ...sent, job: delivery, name, earlyMs, skipped }
}

/** Of the time that an alert has left until it expires: so long it waits for context, or for others. The rest is for the send. */
const expiryWaitShare = 0.5

/** An alert goes out without its context, also where a fault of this program is the reason. */
function foundFor(
  delivery: DeliveryJob,
  options: Parameters<FindContext>[1],
  deps: DeliverDeps,
): ReturnType<FindContext> {
  try {
    return deps.findContext?.(delivery, options)?.catch((error: unknown) => logNotFound(error, deps))
  } catch (error) {
    return logNotFound(error, deps)
  }
}

/** The text of the error may repeat an address with a secret in it: only its kind is logged. */
function logNotFound(error: unknown, { sink, log }: DeliverDeps): undefined {
  const kind = errorCode(error) ?? toError(error).constructor.name
  log.error({ sink: sink.name, kind }, 'the context could not be looked up')
}

/**
 * The own fields of a job that was taken over, read after its former process had time to write down that it was sent: both
 * processes may have lost Redis at the same time.
 */
async function fieldsAfterWait(
  job: LockedJob,
  delivery: DeliveryJob,
  signal: AbortSignal,
  { clock, takeOverMs, stopping }: DeliverDeps,
): Promise<OwnFields | undefined> {
  try {
    await clock.sleep(takeOverMs, AbortSignal.any([signal, stopping]))
  } catch {
    return undefined
  }
  const fields = await claim(job, delivery)
  // Where that fails, the next attempt waits once more.
  if (fields !== undefined) await job.waited().catch(() => {})
  return fields
}

/** For a sink that gets each alert on its own: the only rate limit is the queue's. */
async function sendAlone(member: Member, deps: SendDeps): Promise<MemberResult> {
  if (!(await member.ready())) return { step: 'not_ours' }
  const { clock } = deps
  const [startedAtMs, fromMs] = [clock.now(), clock.monotonicMs()]
  const outcome = await sendMembers([member], member.signal, deps)
  const durationMs = Math.round(clock.monotonicMs() - fromMs)
  const alone = { reportsToCircuit: true, isShared: false, random: Math.random }
  return { step: 'sent', outcome, startedAtMs, durationMs, ...alone }
}

/** A sink ends its attempt at its own limit; if it does not, delivery stops waiting so much later. */
const overtimeMs = 2_000

/** How long a send that is about to begin may take at most. */
export function sendMsMax({ timeoutMs }: Pick<SinkSettings, 'timeoutMs'>): number {
  return commandTimeoutMs + timeoutMs + overtimeMs
}

async function claim(job: LockedJob, { requestedAtMs }: DeliveryJob): Promise<OwnFields | undefined> {
  try {
    const claimed = job.claim(requestedAtMs)
    return claimed instanceof Promise
      ? await within(commandTimeoutMs, 'making sure of the lock', claimed)
      : claimed
  } catch {
    return undefined
  }
}

/** One send: of an alert, or of several that go out together. Never throws for what a sink does. */
export async function sendMembers(
  members: readonly Member[],
  signal: AbortSignal,
  { sink, settings, clock, log }: SendDeps,
): Promise<Outcome> {
  const { controller, off } = abortAlong(signal)
  const [first] = members
  if (first === undefined) throw new TypeError('a send of nothing')
  const { number, target } = first
  const attempt = {
    number,
    nowMs: clock.now(),
    signal: controller.signal,
    ...(target === undefined ? {} : { target }),
  }
  const sending = () => {
    if (members.length > 1 && sink.batch !== undefined)
      return sink.batch.send(oldestFirst(members.map((member) => parcelOf(member.alert, member))), attempt)
    const { alert, ...rest } = parcelOf(first.alert, first)
    return sink.send(alert, { ...attempt, ...rest })
  }
  try {
    return await within(settings.timeoutMs + overtimeMs, 'the attempt', sending())
  } catch (error) {
    controller.abort()
    if (error instanceof TimeLimitError)
      return failure('timeout', `no outcome in ${settings.timeoutMs + overtimeMs} ms`)
    return failure('bad_answer', `the sink failed: ${logSinkFault(error, 'threw', { sink, log })}`)
  } finally {
    off()
  }
}

/** A bug in a sink. The text of the error may repeat an address with a secret in it: only its kind is logged, and returned. */
export function logSinkFault(
  error: unknown,
  what: string,
  { sink, log }: Pick<SendDeps, 'sink' | 'log'>,
): string {
  const kind = errorCode(error) ?? toError(error).constructor.name
  log.error({ sink: sink.name, kind }, `a sink ${what}`)
  return kind
}

function failure(reason: 'timeout' | 'bad_answer', text: string): Outcome {
  return { kind: 'retry', reason, sinkFault: reason === 'timeout', answer: { text } }
}
