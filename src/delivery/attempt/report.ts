import { alertKey } from '../../alert/alert.ts'
import { believedAt } from '../../alert/fired-at.ts'
import type { DeliveryJob } from '../../alert/job.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics, SendResult } from '../../telemetry/metrics.ts'

/** Writes the one log line of an attempt, and its metrics. */
interface AttemptReport {
  readonly sink: string
  readonly job: DeliveryJob
  readonly number: number
  readonly result: SendResult | 'back'
  readonly reason?: string
  readonly status?: number
  /** Absent when nothing was sent. */
  readonly durationMs?: number
  readonly nextInMs?: number
  readonly nowMs: number
}

export function reportAttempt(report: AttemptReport, metrics: Metrics, log: Logger): void {
  const { sink, job, number, result, reason, status, durationMs, nextInMs, nowMs } = report
  const { source, id } = job.alert
  const lagMs = lagOf(job, nowMs)
  if (result !== 'back') metrics.sends.inc({ sink, result })
  const exemplarLabels = { alert: alertKey(job.alert) }
  if (durationMs !== undefined)
    metrics.sendDuration.observe({ labels: { sink }, value: durationMs / 1_000, exemplarLabels })
  if (result === 'delivered' && lagMs !== undefined && !isOutOfHistory(job))
    metrics.deliveryLag.observe({ labels: { source, sink }, value: lagMs / 1_000, exemplarLabels })
  if (result !== 'back')
    metrics.tracer?.attempted({
      alert: job.alert,
      sink,
      target: job.target,
      number,
      requestedAtMs: job.requestedAtMs,
      result,
      reason,
      status,
      durationMs: durationMs ?? 0,
      nowMs,
    })
  log[levels[result]](
    { sink, source, alert: id, attempt: number, result, reason, status, durationMs, lagMs, nextInMs },
    'delivery.attempt',
  )
}

/** The lag of an alert that an operator sends again is counted from the order, not from when the alert fired. */
function lagOf({ alert, requestedAtMs }: DeliveryJob, nowMs: number): number | undefined {
  const fromMs = requestedAtMs ?? believedAt(alert.firedAtMs, nowMs)
  return fromMs === null ? undefined : Math.max(0, nowMs - fromMs)
}

/** It could not have come earlier, but an operator who sends it again waits for it like for any other. */
function isOutOfHistory({ isHistory, requestedAtMs }: DeliveryJob): boolean {
  return isHistory === true && requestedAtMs === undefined
}

const levels = {
  delivered: 'info',
  retry: 'warn',
  dead: 'error',
  expired: 'error',
  back: 'info',
} as const
