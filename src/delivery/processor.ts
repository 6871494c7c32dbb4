import { DelayedError, type Job, UnrecoverableError, WaitingError } from 'bullmq'
import type { DeliveryJob, JobData } from '../alert/job.ts'
import { errorCode, toError } from '../lib/errors.ts'
import { within } from '../lib/time-limit.ts'
import type { Answer } from '../sinks/outcome.ts'
import { redisErrorText } from '../store/redis.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { BreakerEvent } from './breaker.ts'
import { type DeliverContext, deliver, type LockedJob, type Tried } from './deliver.ts'
import type { JobMarks, MarkedJob } from './job-marks.ts'
import { type AttemptRecord, attemptRecord } from './records/attempt-record.ts'
import { reportAttempt } from './report.ts'
import { expiresAtMs, signOf, type Verdict, verdictOf } from './verdict.ts'

/**
 * Carries out in BullMQ's terms what an attempt's verdict says. What is thrown here is made here: its message starts
 * with a word of ours, because BullMQ gives meaning to some texts and names of errors, and keeps the message in Redis.
 */
export type AlertJob = Job<JobData, AttemptRecord>

/** What the sink's lane lends to the processor of its jobs. */
export interface ProcessorContext extends DeliverContext {
  readonly metrics: Metrics
  readonly lockMs: number
  readonly marks: JobMarks
  /** Its sink has taken it; what is still to come is that Redis records it. */
  onAcknowledged(job: MarkedJob, record: AttemptRecord): void
  /** Before the job is let go, so that no other is fetched from a queue that is to be held. */
  observe(event: BreakerEvent): Promise<void>
  hold(forMs: number): Promise<void>
  /** An alert is about to wait for the mark of its digest; never rejects. */
  waiting(): Promise<void>
  /** Puts these into the place of a job that is locked by this token. */
  replace(id: string, token: string, by: readonly DeliveryJob[]): Promise<unknown>
}

/** To be tried again, after `delayMs`; read by the worker's backoff strategy. */
export class RetryLater extends Error {
  override readonly name = 'RetryLater'
  readonly delayMs: number

  constructor(message: string, delayMs: number) {
    super(message)
    this.delayMs = delayMs
  }
}

/** After a fault of ours, which burns no attempt; the alert's age ends it some day. */
const faultPauseMs = 60_000

/** Resolves to the record of the acknowledgement; everything else is thrown as BullMQ wants it. */
export async function processJob(
  job: AlertJob,
  token: string,
  signal: AbortSignal,
  context: ProcessorContext,
): Promise<AttemptRecord> {
  try {
    return await step(job, token, signal, context)
  } catch (error) {
    if (verdicts.some((kind) => error instanceof kind)) throw error
    // The text of an error that was not made here is neither kept nor given a chance to mean something.
    const kind = errorCode(error) ?? toError(error).constructor.name
    context.log.error({ sink: context.sink.name, job: job.id, kind }, 'a job could not be handled')
    return delay(job, token, faultPauseMs, context)
  }
}

const verdicts = [RetryLater, UnrecoverableError, DelayedError, WaitingError]

async function step(
  job: AlertJob,
  token: string,
  signal: AbortSignal,
  context: ProcessorContext,
): Promise<AttemptRecord> {
  const number = job.attemptsMade + 1
  const id = job.id ?? ''
  const claim: LockedJob['claim'] = async (requestedAtMs) => {
    const lock = job.extendLock(token, context.lockMs)
    const [extended, marks] = await Promise.all([lock, context.marks.read({ id, requestedAtMs })])
    return extended === 1 ? marks : undefined
  }
  const takenOver = job.stalledCounter > 0
  const tried = await deliver({ id, data: job.data, number, takenOver, claim }, signal, context)
  switch (tried.step) {
    case 'acknowledged_before':
      context.log.info({ sink: context.sink.name, job: job.id }, 'acknowledged before, not sent again')
      return tried.record
    case 'not_ours':
      return putBack(job, token, context)
    case 'waits':
      await context.waiting()
      return delay(job, token, tried.untilMs - context.clock.now(), context)
    case 'replaced':
      await moved(context.replace(id, token, tried.by), context)
      throw new WaitingError()
    case 'unreadable':
      context.log.error({ sink: context.sink.name, job: job.id, reason: tried.reason }, 'unreadable job')
      context.metrics.sends.inc({ sink: context.sink.name, result: 'dead' })
      throw new UnrecoverableError(`unrenderable: ${tried.reason}`)
    case 'expired':
      return bury(job, number, tried, context)
    case 'sent':
      return settle(job, token, number, tried, signal.aborted, context)
    default:
      return tried satisfies never
  }
}

async function settle(
  job: AlertJob,
  token: string,
  number: number,
  tried: Extract<Tried, { step: 'sent' }>,
  brokenOff: boolean,
  context: ProcessorContext,
): Promise<AttemptRecord> {
  const { sink, settings, clock, acknowledged, metrics, log } = context
  const { outcome, startedAtMs, durationMs, earlyMs } = tried
  const nowMs = clock.now()
  const verdict = verdictOf(
    outcome,
    { number, nowMs, brokenOff, earlyMs, expiresAtMs: expiresAtMs(tried.job, settings) },
    settings,
    tried.random,
  )
  const reason = outcome.kind === 'delivered' ? undefined : outcome.reason
  const result = resultOf(verdict)
  const record = attemptRecord({
    number,
    atMs: startedAtMs,
    durationMs,
    result: result === 'back' ? 'retry' : result,
    answer: outcome.answer,
    ...(reason === undefined ? {} : { reason }),
    ...(verdict.kind === 'again' ? { nextAtMs: nowMs + verdict.delayMs } : {}),
  })
  // First of all: whatever breaks from here on, this process does not send it again.
  if (verdict.kind === 'delivered') {
    acknowledged.add(tried.name, record)
    context.onAcknowledged({ id: job.id ?? '', requestedAtMs: tried.job.requestedAtMs }, record)
  }
  reportAttempt(
    {
      sink: sink.name,
      job: tried.job,
      number,
      result,
      durationMs,
      nowMs,
      ...(reason === undefined ? {} : { reason }),
      ...(outcome.answer.status === undefined ? {} : { status: outcome.answer.status }),
      ...(verdict.kind === 'again' ? { nextInMs: verdict.delayMs } : {}),
    },
    metrics,
    log,
  )
  if (verdict.kind !== 'back' && tried.leads) {
    const sign = signOf(outcome)
    const startedAtMs = clock.monotonicMs() - durationMs
    await context.observe({ sign, alert: job.id ?? '', reason: reason ?? 'delivered', startedAtMs })
  }
  return carryOut(verdict, record, { job, token, requestedAtMs: tried.job.requestedAtMs }, context)
}

interface Taken {
  readonly job: AlertJob
  readonly token: string
  readonly requestedAtMs: number | undefined
}

async function carryOut(
  verdict: Verdict,
  record: AttemptRecord,
  taken: Taken,
  context: ProcessorContext,
): Promise<AttemptRecord> {
  const { job, token } = taken
  switch (verdict.kind) {
    case 'delivered':
      return record
    case 'back':
      return putBack(job, token, context)
    case 'dead':
      await keep(job, record, context)
      throw new UnrecoverableError(`${verdict.reason}: ${describe(whyDead(verdict, record), verdict.answer)}`)
    case 'again':
      if (verdict.holdMs !== undefined) await context.hold(verdict.holdMs)
      await keep(job, record, context)
      // Before the job is let go: whoever takes it next must know whether it is due.
      if ((await markedDue(verdict.dueInMs, taken, context)) && verdict.burnt)
        throw new RetryLater(`${verdict.reason}: ${describe(undefined, verdict.answer)}`, verdict.delayMs)
      return delay(job, token, verdict.delayMs, context)
    default:
      return verdict satisfies never
  }
}

async function bury(
  job: AlertJob,
  number: number,
  tried: Extract<Tried, { step: 'expired' }>,
  context: ProcessorContext,
): Promise<never> {
  const nowMs = context.clock.now()
  const text = `too old for this sink before attempt ${number}`
  const report = { sink: context.sink.name, job: tried.job, number, result: 'expired' as const, nowMs }
  reportAttempt(report, context.metrics, context.log)
  await keep(job, { number, atMs: nowMs, durationMs: 0, result: 'expired', reason: 'expired', text }, context)
  throw new UnrecoverableError(`expired: ${text}`)
}

/** Where Redis does not take the mark, it is not told of an attempt either: the job is put off, or left to its lock. */
async function markedDue(
  dueInMs: number | undefined,
  { job, requestedAtMs }: Taken,
  { marks, sink, log }: ProcessorContext,
): Promise<boolean> {
  try {
    if (dueInMs !== undefined) await marks.putOff({ id: job.id ?? '', requestedAtMs }, dueInMs)
    return true
  } catch (error) {
    log.warn({ sink: sink.name, reason: redisErrorText(error) }, 'attempt not counted')
    return false
  }
}

const keepTimeoutMs = 5_000
const moveTimeoutMs = 5_000

/** The story is worth less than the delivery: when Redis does not take it, things go on. */
async function keep(job: AlertJob, record: AttemptRecord, context: ProcessorContext): Promise<void> {
  try {
    await within(keepTimeoutMs, 'keeping the record', job.log(JSON.stringify(record)))
  } catch (error) {
    context.log.warn({ sink: context.sink.name, reason: redisErrorText(error) }, 'attempt not recorded')
  }
}

/** Back to the head of the queue. Where that fails, the lock runs out and the job is picked up as stalled: the same. */
async function putBack(job: AlertJob, token: string, context: ProcessorContext): Promise<never> {
  await moved(job.moveToWait(token), context)
  throw new WaitingError()
}

async function delay(
  job: AlertJob,
  token: string,
  delayMs: number,
  context: ProcessorContext,
): Promise<never> {
  await moved(job.moveToDelayed(Date.now() + delayMs, token), context)
  throw new DelayedError()
}

async function moved(move: Promise<unknown>, context: ProcessorContext): Promise<void> {
  try {
    await within(moveTimeoutMs, 'moving the job', move)
  } catch (error) {
    context.log.debug({ sink: context.sink.name, reason: toError(error).name }, 'job left to its lock')
  }
}

function resultOf(verdict: Verdict) {
  if (verdict.kind === 'dead') return verdict.reason === 'expired' ? 'expired' : 'dead'
  return verdict.kind === 'again' ? 'retry' : verdict.kind
}

/** The reason of the last attempt, where that is not the verdict itself. */
function whyDead(verdict: { readonly reason: string }, record: AttemptRecord): string | undefined {
  return record.reason === verdict.reason ? undefined : record.reason
}

function describe(reason: string | undefined, { status, text }: Answer): string {
  return [reason, status, text].filter((part) => part !== undefined && part !== '').join(' ')
}
