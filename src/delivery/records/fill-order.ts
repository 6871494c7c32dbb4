import { firedAlertOf, fromJobData } from '../../alert/job.ts'
import { within } from '../../lib/time-limit.ts'
import type { FiredAlerts } from '../../store/fired-alerts.ts'
import type { ReaderOptions } from './search.ts'

/**
 * Adds to the order of firing what an earlier version delivered, which did not keep one; nothing where the oldest records are in it.
 * What comes meanwhile is added by whoever stores it, so it does not matter that lists move while they are read.
 */
export async function fillOrder(
  fired: FiredAlerts,
  { queues, gone }: Pick<ReaderOptions, 'queues' | 'gone'>,
  signal: AbortSignal,
): Promise<void> {
  for (const sink of [...queues.sinks, ...(await gone())]) {
    const queue = queues.anyQueue(sink)
    for (let from = 0; !signal.aborted; from += batchMax) {
      const reading = queue.getJobs([...types], from, from + batchMax - 1, true)
      const jobs = await within(readTimeoutMs, 'reading deliveries', reading)
      const alerts = jobs.flatMap((job) => {
        const parsed = fromJobData(sink, job.data)
        return parsed.ok ? [firedAlertOf(parsed.job)] : []
      })
      const times = await fired.timesOf(alerts.map(({ name }) => name))
      if (jobs.length === 0 || !times.includes(null)) break
      await fired.add(alerts)
    }
  }
}

const types = ['completed', 'failed', 'delayed', 'wait', 'active'] as const
/** Of each type. */
const batchMax = 100
const readTimeoutMs = 5_000
