import { fromJobData, type JobData } from '../alert/job.ts'
import type { AlertJob } from './processor.ts'
import {
  type EndedOptions,
  type Handled,
  type Selected,
  type Selection,
  select,
  selectedMax,
} from './selection.ts'
import { within } from './time-limit.ts'

/** Sends again on purpose what was delivered, or given up on. */
export interface Replay {
  /**
   * `sinceMs` and `untilMs` are when the bridge first saw the alert. What still waits to be delivered is left to its
   * schedule.
   */
  replay(selection: Selection): Promise<Handled>
}

export function createReplay(options: EndedOptions): Replay {
  const { clock, limit = selectedMax } = options
  return {
    async replay(selection) {
      const found = await select(selection, ['completed', 'failed'], seenAtMs, limit, options)
      return { handled: await resend(found, clock.now()), more: found.length === limit }
    },
  }
}

/** Puts ended jobs back to waiting, each with a fresh schedule; returns how many were still there to be put back. */
export async function resend(found: readonly Selected[], nowMs: number): Promise<number> {
  let resent = 0
  for (let from = 0; from < found.length; from += parallel) {
    const batch = found.slice(from, from + parallel).map((each) => resendOne(each, nowMs))
    const done = await within(resendTimeoutMs, 'sending again', Promise.all(batch))
    resent += done.filter(Boolean).length
  }
  return resent
}

const parallel = 50
const resendTimeoutMs = 10_000

async function resendOne({ job, state }: Selected, nowMs: number): Promise<boolean> {
  // The answer of the last time would go with the job's state.
  if (state === 'completed' && job.returnvalue) await job.log(JSON.stringify(job.returnvalue))
  // Marks it as a delivery of its own, so that neither its age nor the memory of the first one stops it.
  const data: JobData = { ...job.data, requestedAtMs: nowMs }
  await job.updateData(data)
  try {
    await job.retry(state, { resetAttemptsMade: true, resetAttemptsStarted: true })
    return true
  } catch (error) {
    // It is not in that state any more: somebody else was faster.
    if (error instanceof Error && 'code' in error && typeof error.code === 'number') return false
    throw error
  }
}

function seenAtMs(job: AlertJob): number {
  const parsed = fromJobData('', job.data)
  return parsed.ok ? parsed.job.seenAtMs : job.timestamp
}
