import { DelayedError, UnrecoverableError, WaitingError } from 'bullmq'
import type { DeliveryJob } from '../../alert/job.ts'
import { errorCode, toError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import { within } from '../../lib/time-limit.ts'
import { redisErrorText } from '../../store/connection/redis-errors.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { BreakerEvent } from '../circuit/breaker.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { type AttemptRecord, attemptRecord, tooOldText } from '../queue/attempt-record.ts'
import { type JobDelivery, type JobFields, noFields } from '../queue/job-fields.ts'
import type { LockAges } from '../queue/lock-ages.ts'
import type { AlertJob } from '../queue/queues.ts'
import { type DeliverDeps, deliver, type JobResult, type LockedJob } from './deliver.ts'
import { answerText, expiresAtMs, type FollowUp, followUpOf, signOf } from './follow-up.ts'
import { reportAttempt } from './report.ts'

/**
 * Carries out in BullMQ's terms what follows an attempt (`FollowUp`). What is thrown here is made here: its message starts
 * with a word of ours, because BullMQ gives meaning to some texts and names of errors, and keeps the message in Redis.
 */

/** What the processor of a sink's jobs needs from the sink's lane. */
export interface ProcessorDeps extends DeliverDeps {
  readonly metrics: Metrics
  readonly lockAges: Pick<LockAges, 'isYoung' | 'lockMs'>
  readonly jobFields: JobFields
  /** The sink has acknowledged it; Redis has not recorded that yet. */
  onAcknowledged(job: JobDelivery, record: AttemptRecord): void
  /** Awaited before the job is released, so that no other is fetched from a queue that is to be held. */
  observe(event: BreakerEvent): Promise<void>
  hold(forMs: number): Promise<void>
  /** An alert is about to wait for the mark of its digest; never rejects. */
  waiting(): Promise<void>
  /** Puts these into the place of a job that is locked by this token. */
  replace(id: string, token: string, by: readonly DeliveryJob[]): Promise<unknown>
}

/** Thrown for a job that is tried again after `delayMs`, which the worker's backoff strategy reads from it. */
export class RetryLater extends Error {
  override readonly name = 'RetryLater'
  readonly delayMs: number

  constructor(message: string, delayMs: number) {
    super(message)
    this.delayMs = delayMs
  }
}

/** The pause after a bug in this program. No attempt is counted; the alert expires at its time. */
const faultPauseMs = 60_000

/** Resolves to the record of the acknowledgement; everything else is thrown as the error that BullMQ expects. */
export async function processJob(
  job: AlertJob,
  token: string,
  signal: AbortSignal,
  deps: ProcessorDeps,
): Promise<AttemptRecord> {
  try {
    return await step(job, token, signal, deps)
  } catch (error) {
    if (expectedErrors.some((kind) => error instanceof kind)) throw error
    // The text of any other error may contain a secret, or a word that BullMQ acts on: only its kind is logged.
    const kind = errorCode(error) ?? toError(error).constructor.name
    deps.log.error({ sink: deps.sink.name, job: job.id, kind }, 'a job could not be handled')
    return delay(job, token, faultPauseMs, deps)
  }
}

const expectedErrors = [RetryLater, UnrecoverableError, DelayedError, WaitingError]

async function step(
  job: AlertJob,
  token: string,
  signal: AbortSignal,
  deps: ProcessorDeps,
): Promise<AttemptRecord> {
  const number = job.attemptsMade + 1
  const id = job.id ?? ''
  const stall = job.stalledCounter
  // The fields are written by processes that had the job.
  const isFirstTaken = job.attemptsStarted === 1 && stall === 0
  const claim: LockedJob['claim'] = (requestedAtMs) => {
    const isYoung = deps.lockAges.isYoung(token)
    return isFirstTaken && isYoung ? noFields : claimed(requestedAtMs, isYoung)
  }
  const claimed = async (requestedAtMs: number | undefined, isYoung: boolean) => {
    const [isOurs, fields] = await Promise.all([
      isYoung || isRenewed(job, token, deps.lockAges),
      isFirstTaken ? noFields : deps.jobFields.read({ id, requestedAtMs }),
    ])
    return isOurs ? fields : undefined
  }
  const takenOver = stall > 0 && stall > (await deps.jobFields.waitedAtStall(id).catch(() => 0))
  const waited = () => deps.jobFields.waited(id, stall)
  const result = await deliver({ id, data: job.data, number, takenOver, waited, claim }, signal, deps)
  switch (result.step) {
    case 'acknowledged_before':
      deps.log.info({ sink: deps.sink.name, job: job.id }, 'acknowledged before, not sent again')
      return result.record
    case 'not_ours':
      return putBack(job, token, deps)
    case 'waits':
      await deps.waiting()
      return delay(job, token, result.untilMs - deps.clock.now(), deps)
    case 'replaced':
      await moved(deps.replace(id, token, result.by), deps)
      throw new WaitingError()
    case 'unreadable':
      deps.log.error({ sink: deps.sink.name, job: job.id, reason: result.reason }, 'unreadable job')
      deps.metrics.sends.inc({ sink: deps.sink.name, result: 'dead' })
      throw new UnrecoverableError(`unrenderable: ${result.reason}`)
    case 'expired':
      return giveUpExpired(job, number, result, deps)
    case 'sent':
      return settle(job, token, number, result, signal.aborted, deps)
    default:
      return result satisfies never
  }
}

/** Whether the job was still locked by this token; then it is, for `lockMs` more. */
export async function isRenewed(
  job: AlertJob,
  token: string,
  { lockMs }: Pick<LockAges, 'lockMs'>,
): Promise<boolean> {
  return (await job.extendLock(token, lockMs)) === 1
}

async function settle(
  job: AlertJob,
  token: string,
  number: number,
  sent: Extract<JobResult, { step: 'sent' }>,
  brokenOff: boolean,
  deps: ProcessorDeps,
): Promise<AttemptRecord> {
  const { sink, settings, clock, acknowledged, metrics, log } = deps
  const { outcome, startedAtMs, durationMs, earlyMs } = sent
  const nowMs = clock.now()
  const followUp = followUpOf(
    outcome,
    { number, nowMs, brokenOff, earlyMs, expiresAtMs: expiresAtMs(sent.job, settings) },
    settings,
    sent.random,
  )
  const reason = outcome.kind === 'delivered' ? undefined : outcome.reason
  const result = resultOf(followUp)
  const record = attemptRecord({
    number,
    atMs: startedAtMs,
    durationMs,
    result: result === 'back' ? 'retry' : result,
    answer: outcome.answer,
    ...(reason === undefined ? {} : { reason }),
    ...(result === 'delivered' && sent.skipped.length > 0 ? { skipped: sent.skipped } : {}),
    ...(followUp.kind === 'again' ? { nextAtMs: nowMs + followUp.delayMs } : {}),
  })
  // Before anything that may fail: this process must not send it again.
  if (followUp.kind === 'delivered') {
    acknowledged.add(sent.name, record)
    deps.onAcknowledged({ id: job.id ?? '', requestedAtMs: sent.job.requestedAtMs }, record)
  }
  reportAttempt(
    {
      sink: sink.name,
      job: sent.job,
      number,
      result,
      durationMs,
      nowMs,
      ...given({ reason, status: outcome.answer.status }),
      ...(followUp.kind === 'again' ? { nextInMs: followUp.delayMs } : {}),
    },
    metrics,
    log,
  )
  if (followUp.kind !== 'back' && sent.reportsToCircuit) {
    const startedAtMs = clock.monotonicMs() - durationMs
    await deps.observe({ ...signOf(sent, sent.job.alert, { jobId: job.id ?? '', number }), startedAtMs })
  }
  return carryOut(followUp, record, { job, token, requestedAtMs: sent.job.requestedAtMs }, deps)
}

interface LockedByToken {
  readonly job: AlertJob
  readonly token: string
  readonly requestedAtMs: number | undefined
}

async function carryOut(
  followUp: FollowUp,
  record: AttemptRecord,
  taken: LockedByToken,
  deps: ProcessorDeps,
): Promise<AttemptRecord> {
  const { job, token } = taken
  switch (followUp.kind) {
    case 'delivered':
      return record
    case 'back':
      return putBack(job, token, deps)
    case 'dead':
      await keep(job, record, deps)
      throw new UnrecoverableError(
        `${followUp.reason}: ${answerText(followUp.answer, whyDead(followUp, record))}`,
      )
    case 'again':
      if (followUp.holdMs !== undefined) await deps.hold(followUp.holdMs)
      await keep(job, record, deps)
      // Before the job is released: the process that takes it next must know whether it is due.
      if (await storeDue(followUp.dueInMs, taken, deps)) {
        const reason = `${followUp.reason}: ${answerText(followUp.answer)}`
        if (followUp.burnt) throw new RetryLater(reason, followUp.delayMs)
        // Only for people.
        await deps.jobFields.failed(job.id ?? '', reason).catch(() => {})
      }
      return delay(job, token, followUp.delayMs, deps)
    default:
      return followUp satisfies never
  }
}

async function giveUpExpired(
  job: AlertJob,
  number: number,
  expired: Extract<JobResult, { step: 'expired' }>,
  deps: ProcessorDeps,
): Promise<never> {
  const nowMs = deps.clock.now()
  const text = tooOldText
  const report = { sink: deps.sink.name, job: expired.job, number, result: 'expired' as const, nowMs }
  reportAttempt(report, deps.metrics, deps.log)
  await keep(job, { number, atMs: nowMs, durationMs: 0, result: 'expired', reason: 'expired', text }, deps)
  throw new UnrecoverableError(`expired: ${text}`)
}

/** Where Redis does not store the field, the attempt is not counted either: the job is delayed, or left to its lock. */
async function storeDue(
  dueInMs: number | undefined,
  { job, requestedAtMs }: LockedByToken,
  { jobFields, sink, log }: ProcessorDeps,
): Promise<boolean> {
  try {
    if (dueInMs !== undefined) await jobFields.delay({ id: job.id ?? '', requestedAtMs }, dueInMs)
    return true
  } catch (error) {
    log.warn({ sink: sink.name, reason: redisErrorText(error) }, 'attempt not counted')
    return false
  }
}

/** Without a record of the attempt the delivery still continues. */
async function keep(job: AlertJob, record: AttemptRecord, deps: ProcessorDeps): Promise<void> {
  try {
    await within(commandTimeoutMs, 'storing the record', job.log(JSON.stringify(record)))
  } catch (error) {
    deps.log.warn({ sink: deps.sink.name, reason: redisErrorText(error) }, 'attempt not recorded')
  }
}

/** Back to the head of the queue. Where that fails, the lock expires and BullMQ hands the job out again as stalled. */
async function putBack(job: AlertJob, token: string, deps: ProcessorDeps): Promise<never> {
  await moved(job.moveToWait(token), deps)
  throw new WaitingError()
}

async function delay(job: AlertJob, token: string, delayMs: number, deps: ProcessorDeps): Promise<never> {
  await moved(job.moveToDelayed(Date.now() + delayMs, token), deps)
  throw new DelayedError()
}

async function moved(move: Promise<unknown>, deps: ProcessorDeps): Promise<void> {
  try {
    await within(commandTimeoutMs, 'moving the job', move)
  } catch (error) {
    deps.log.debug(
      { sink: deps.sink.name, reason: toError(error).name },
      'the job could not be moved; it is handed out again when its lock expires',
    )
  }
}

function resultOf(followUp: FollowUp) {
  if (followUp.kind === 'dead') return followUp.reason === 'expired' ? 'expired' : 'dead'
  return followUp.kind === 'again' ? 'retry' : followUp.kind
}

/** The reason of the last attempt, where that is not why it is a dead letter. */
function whyDead(followUp: { readonly reason: string }, record: AttemptRecord): string | undefined {
  return record.reason === followUp.reason ? undefined : record.reason
}
