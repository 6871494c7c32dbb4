import { type DeliveryJob, fromJobData } from '../alert/job.ts'
import type { Clock } from '../lib/clock.ts'
import { errorCode, toError } from '../lib/errors.ts'
import type { Outcome } from '../sinks/outcome.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Acknowledged } from './acknowledged.ts'
import type { AttemptRecord } from './attempt-record.ts'
import type { SinkEntry } from './settings.ts'
import { TimeLimitError, within } from './time-limit.ts'
import { expiresAtMs } from './verdict.ts'

/**
 * One job, one attempt at most: from what the queue holds to what the sink answered. Keeps that nothing is sent that
 * cannot be read, is too old, was acknowledged already as far as this process knows, or belongs to somebody else by
 * now. Decides nothing about what follows, and never throws for what a sink does.
 */
export type Tried =
  | {
      readonly step: 'sent'
      readonly job: DeliveryJob
      readonly name: string
      readonly outcome: Outcome
      readonly startedAtMs: number
      readonly durationMs: number
    }
  | { readonly step: 'acknowledged_before'; readonly record: AttemptRecord }
  | { readonly step: 'expired'; readonly job: DeliveryJob }
  | { readonly step: 'unreadable'; readonly reason: string }
  /** Another worker has it, or Redis does not say; and whoever shuts down sends nothing new. */
  | { readonly step: 'not_ours' }

export interface LockedJob {
  readonly id: string
  readonly data: unknown
  /** The attempt that this would be, from 1. */
  readonly number: number
  /** Renews the lock; false when it is not ours any more. */
  extendLock(): Promise<boolean>
}

export interface DeliverContext extends SinkEntry {
  readonly acknowledged: Acknowledged
  readonly clock: Clock
  readonly log: Logger
}

export async function deliver(job: LockedJob, signal: AbortSignal, context: DeliverContext): Promise<Tried> {
  const { sink, settings, acknowledged, clock } = context
  const parsed = fromJobData(sink.name, job.data)
  if (!parsed.ok) return { step: 'unreadable', reason: parsed.reason }
  const delivery = parsed.job
  // What an operator asks for again is a delivery of its own.
  const name = `${sink.name}/${job.id}/${delivery.requestedAtMs ?? ''}`
  const record = acknowledged.get(name)
  if (record) return { step: 'acknowledged_before', record }
  if (clock.now() >= expiresAtMs(delivery, settings)) return { step: 'expired', job: delivery }
  // A process that was frozen, or cut off from Redis, wakes up believing that the job is still its own.
  if (signal.aborted || !(await stillOurs(job)) || signal.aborted) return { step: 'not_ours' }
  const startedAtMs = clock.now()
  const outcome = await send(delivery, job.number, signal, context)
  return { step: 'sent', job: delivery, name, outcome, startedAtMs, durationMs: clock.now() - startedAtMs }
}

const fenceTimeoutMs = 5_000
/** A sink keeps its own limit; one that does not is given up on so much later. */
const overtimeMs = 2_000

async function stillOurs(job: LockedJob): Promise<boolean> {
  try {
    return await within(fenceTimeoutMs, 'renewing the lock', job.extendLock())
  } catch {
    return false
  }
}

async function send(
  { alert, target, heldBack }: DeliveryJob,
  number: number,
  signal: AbortSignal,
  { sink, settings, clock, log }: DeliverContext,
): Promise<Outcome> {
  const overtime = new AbortController()
  const attempt = {
    number,
    nowMs: clock.now(),
    signal: AbortSignal.any([signal, overtime.signal]),
    ...(target === undefined ? {} : { target }),
    ...(heldBack === undefined ? {} : { heldBack }),
  }
  try {
    return await within(settings.timeoutMs + overtimeMs, 'the attempt', sink.send(alert, attempt))
  } catch (error) {
    overtime.abort()
    if (error instanceof TimeLimitError)
      return failure('timeout', `no outcome in ${settings.timeoutMs + overtimeMs} ms`)
    // A fault of ours. Its text may repeat an address with a secret in it: only its kind is told.
    const kind = errorCode(error) ?? toError(error).constructor.name
    log.error({ sink: sink.name, kind }, 'a sink threw')
    return failure('bad_answer', `the sink failed: ${kind}`)
  }
}

function failure(reason: 'timeout' | 'bad_answer', text: string): Outcome {
  return { kind: 'retry', reason, sinkFault: reason === 'timeout', answer: { text } }
}
