import { instantOf, wallTime } from '../lib/zone.ts'

/**
 * The first mark of a digest after `atMs`: an instant at which the wall clock shows a full multiple of `everyMs` since
 * midnight. Pure, and a function of when the alert came alone, so that nothing has to be kept about what waits.
 */
export function digestMark(atMs: number, everyMs: number, timeZone: string): number {
  const wallMs = wallTime(atMs, timeZone)
  for (let step = 1; step <= stepsMax; step += 1) {
    const markMs = instantOf((Math.floor(wallMs / everyMs) + step) * everyMs, timeZone)
    // A mark in an hour that comes twice had its first coming already.
    if (markMs > atMs) return markMs
  }
  return atMs + everyMs
}

/** Clocks go back by a few hours at the most, and marks are a minute apart at the least. */
const stepsMax = 200
