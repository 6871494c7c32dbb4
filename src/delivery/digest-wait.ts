import type { DeliveryJob } from '../alert/job.ts'
import { digestMark } from './digest-mark.ts'
import type { SinkEntry } from './settings.ts'
import { expiresAtMs } from './verdict.ts'

/** When the digest that this alert belongs to goes out, unless it is due or would come too late for the alert. Pure. */
export function waitsUntil(
  job: DeliveryJob,
  { sink, settings }: SinkEntry,
  nowMs: number,
): number | undefined {
  const plan = sink.batch?.plan
  if (plan?.kind !== 'digest') return undefined
  const markMs = digestMark(job.requestedAtMs ?? job.seenAtMs, plan.everyMs, plan.timeZone)
  return nowMs < markMs && markMs < expiresAtMs(job, settings) ? markMs : undefined
}

/** Names all that `waitsUntil` goes by; undefined where no alert waits for a mark. */
export function digestPlanOf({ sink, settings }: SinkEntry): string | undefined {
  const plan = sink.batch?.plan
  if (plan?.kind !== 'digest') return undefined
  return [plan.everyMs, plan.timeZone, settings.expireAfterMs ?? ''].join(' ')
}
