import type { Alert } from '../../alert/alert.ts'
import { fromJobData } from '../../alert/job.ts'
import { headlineOf } from '../../alert/text/display.ts'
import { given } from '../../lib/given.ts'
import { type AttemptRecord, parseAttemptRecord } from '../queue/attempt-record.ts'
import type { AlertJob } from '../queue/queues.ts'

/** The delivery of one alert to one sink (or one target of it), for people and programs to read. */
export interface JobView {
  readonly sink: string
  readonly jobId: string
  readonly state: JobState
  /** Absent only where the job's data cannot be read. */
  readonly alert?: AlertSummary
  readonly target?: string
  readonly seenAtMs?: number
  /** The page of the feed that it was on. */
  readonly page?: number
  /** What the routes that took it were called. */
  readonly routes?: readonly string[]
  /** When an operator last asked to send it again. */
  readonly requestedAtMs?: number
  /** Attempts of the current schedule that count; giving up without a send counts as one. */
  readonly attempts: number
  /** The acknowledgement, once there is one. */
  readonly delivered?: AttemptRecord
  /** Why the last attempt failed, or why the alert was given up on: the reason, a colon, the answer. */
  readonly failure?: string
  readonly nextAttemptAtMs?: number
  /** When its state last changed. */
  readonly changedAtMs: number
}

/** With a headline also where the row has none. */
export type AlertSummary = Pick<
  Alert,
  'source' | 'id' | 'kind' | 'symbol' | 'headline' | 'url' | 'why' | 'ruleIds' | 'firedAt'
>

export function summaryOf(alert: Alert): AlertSummary {
  const { source, id, kind, symbol, url, why, ruleIds, firedAt } = alert
  return { source, id, kind, symbol, headline: headlineOf(alert), url, why, ruleIds, firedAt }
}

export const jobStates = ['waiting', 'active', 'delayed', 'completed', 'failed'] as const
export type JobState = (typeof jobStates)[number]

export function viewOfJob(sink: string, job: AlertJob, state: JobState, nextAttemptAtMs?: number): JobView {
  const parsed = fromJobData(sink, job.data)
  const delivered = state === 'completed' ? parseAttemptRecord(job.returnvalue) : undefined
  // BullMQ keeps the last failure with a job that was acknowledged in the end.
  const failure = state === 'completed' ? undefined : job.failedReason
  return {
    sink,
    jobId: job.id ?? '',
    state,
    ...(parsed.ok ? alertFields(parsed.job) : {}),
    attempts: job.attemptsMade,
    ...(delivered ? { delivered } : {}),
    ...(failure ? { failure } : {}),
    ...given({ nextAttemptAtMs }),
    changedAtMs: job.finishedOn ?? job.processedOn ?? job.timestamp,
  }
}

function alertFields(job: Extract<ReturnType<typeof fromJobData>, { ok: true }>['job']) {
  return {
    alert: summaryOf(job.alert),
    seenAtMs: job.seenAtMs,
    page: job.page ?? 1,
    ...given({ target: job.target, requestedAtMs: job.requestedAtMs, routes: job.routes }),
  }
}
