import { alertKey } from '../../alert/alert.ts'
import { type DeliveryJob, firedMsOf } from '../../alert/job.ts'
import type { SampleAlert } from './selection.ts'

/** Enough for people to see what an order means. */
export const sampleMax = 3

export function sampleOf(job: Pick<DeliveryJob, 'alert' | 'seenAtMs'>): SampleAlert {
  const { source, id } = job.alert
  return { source, id, firedAtMs: firedMsOf(job) }
}

/** Those that fired last, each alert once, however many sinks and recipients it has. */
export function newestOf(alerts: readonly SampleAlert[]): SampleAlert[] {
  const each = new Map(alerts.map((alert) => [alertKey(alert), alert]))
  return [...each.values()].sort((a, b) => b.firedAtMs - a.firedAtMs || b.id - a.id).slice(0, sampleMax)
}
