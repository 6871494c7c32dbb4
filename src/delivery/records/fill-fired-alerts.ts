import { firedAlertOf, fromJobData } from '../../alert/job.ts'
import { within } from '../../lib/time-limit.ts'
import type { FiredAlerts } from '../../store/fired-alerts.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { ReaderOptions } from './search.ts'

/**
 * Adds to the fired alerts what an earlier version delivered, which did not store them; nothing where the oldest records are among
 * them. Alerts that come meanwhile are added by the process that stores them, so lists may change while they are read.
 */
export async function fillFiredAlerts(
  fired: FiredAlerts,
  { queues, orphans }: Pick<ReaderOptions, 'queues' | 'orphans'>,
  signal: AbortSignal,
): Promise<void> {
  for (const sink of [...queues.sinks, ...(await orphans())]) {
    const queue = queues.anyQueue(sink)
    for (let from = 0; !signal.aborted; from += batchMax) {
      const reading = queue.getJobs([...types], from, from + batchMax - 1, true)
      const jobs = await within(commandTimeoutMs, 'reading deliveries', reading)
      const alerts = jobs.flatMap((job) => {
        const parsed = fromJobData(sink, job.data)
        return parsed.ok ? [firedAlertOf(parsed.job)] : []
      })
      const times = await fired.timesOf(alerts.map(({ name }) => name))
      const areThere = times.length > 0 && !times.includes(null)
      if (jobs.length === 0 || areThere) break
      await fired.add(alerts)
    }
  }
}

const types = ['completed', 'failed', 'delayed', 'wait', 'active'] as const
/** Of each type: a row may be as large as a page of the feed. */
const batchMax = 25
