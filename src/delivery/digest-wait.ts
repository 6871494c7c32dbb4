import type { DeliveryJob } from '../alert/job.ts'
import { digestMark } from './digest-mark.ts'
import { expiresAtMs } from './follow-up.ts'
import type { SinkEntry } from './settings.ts'

/**
 * When the digest that this alert belongs to goes out, unless it is due, or that would be too late for the alert. Pure.
 */
export function waitsUntil(
  job: DeliveryJob,
  { sink, settings }: SinkEntry,
  nowMs: number,
): number | undefined {
  const plan = sink.batch?.plan
  if (plan?.kind !== 'digest') return undefined
  const markAfter = (atMs: number) => digestMark(atMs, plan.everyMs, plan.timeZone)
  const markMs = markAfter(job.requestedAtMs ?? job.seenAtMs)
  if (nowMs >= markMs || markMs + goingOutMs > expiresAtMs(job, settings)) return undefined
  // Further away than the mark of an alert that comes now: the clock that dated it was ahead of this one.
  return markMs <= markAfter(nowMs) ? markMs : undefined
}

/** From the mark of a digest until its alerts are sent: gathering them (8 s at most), then its first mails. */
const goingOutMs = 30_000

/** All that `waitsUntil` depends on; undefined where no alert waits for a mark. */
export function digestPlanOf({ sink, settings }: SinkEntry): string | undefined {
  const plan = sink.batch?.plan
  if (plan?.kind !== 'digest') return undefined
  return [plan.everyMs, plan.timeZone, settings.expireAfterMs ?? ''].join(' ')
}
