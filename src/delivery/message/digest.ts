import type { DeliveryJob } from '../../alert/job.ts'
import { instantOf, wallTime } from '../../lib/zone.ts'
import { expiresAtMs } from '../attempt/follow-up.ts'
import type { SinkEntry } from '../settings.ts'

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

/** From the mark of a digest until its alerts are sent: gathering them (12 s at most), then its first mails. */
const goingOutMs = 30_000

/** All that `waitsUntil` depends on; undefined where no alert waits for a mark. */
export function digestPlanOf({ sink, settings }: SinkEntry): string | undefined {
  const plan = sink.batch?.plan
  if (plan?.kind !== 'digest') return undefined
  return [plan.everyMs, plan.timeZone, settings.expireAfterMs ?? ''].join(' ')
}

/**
 * The first mark of a digest after `atMs`: an instant at which the wall clock shows a full multiple of `everyMs` since
 * midnight. Pure, and a function of when the alert came alone, so that nothing has to be kept about what waits.
 */
export function digestMark(atMs: number, everyMs: number, timeZone: string): number {
  const wallMs = wallTime(atMs, timeZone)
  for (let step = 1; step <= stepsMax; step += 1) {
    const markMs = instantOf((Math.floor(wallMs / everyMs) + step) * everyMs, timeZone)
    // Clocks show one hour twice when they are set back: a mark that they showed before already is not the next one.
    if (markMs > atMs) return markMs
  }
  return atMs + everyMs
}

/** Clocks go back by a few hours at the most, and marks are a minute apart at the least. */
const stepsMax = 200
