import { formatDuration } from '../../lib/duration.ts'
import type { ScheduleOptions } from '../options.ts'

/** What does not fit together in budget, pace and the alerts that come, each with its arithmetic. Pure. */
export interface Finding {
  readonly code: 'floor_unaffordable' | 'every_unaffordable' | 'pages_unaffordable' | 'units_unspendable'
  readonly severity: 'warning' | 'info'
  readonly text: string
}

const daySeconds = 86_400
const alertsOnPage = 100
/** Alerts come in heaps, so that pages beyond the first are about three times as many as their mean says. */
const heaping = 3

export function budgetFindings(
  options: ScheduleOptions,
  profile: { readonly alertsPerDay: number },
): Finding[] {
  const { unitsPerDay, maxIntervalMs, minIntervalMs, everyMs } = options
  const findings: Finding[] = []
  const even = formatDuration((daySeconds * 1_000) / unitsPerDay)
  const floorUnits = Math.ceil((daySeconds * 1_000) / maxIntervalMs)
  if (floorUnits > unitsPerDay)
    findings.push({
      code: 'floor_unaffordable',
      severity: 'warning',
      text: `a poll every ${formatDuration(maxIntervalMs)} takes ${floorUnits} units a day (86400 s / ${maxIntervalMs / 1_000} s), and there are ${unitsPerDay}: gaps will be about ${even}`,
    })
  if (everyMs !== undefined && Math.ceil((daySeconds * 1_000) / everyMs) > unitsPerDay)
    findings.push({
      code: 'every_unaffordable',
      severity: 'warning',
      text: `a poll every ${formatDuration(everyMs)} takes ${Math.ceil((daySeconds * 1_000) / everyMs)} units a day, and there are ${unitsPerDay}: they last for ${formatDuration(unitsPerDay * everyMs)} of each day`,
    })
  const pages = Math.ceil((heaping * profile.alertsPerDay) / alertsOnPage)
  if (Math.min(floorUnits, unitsPerDay) + pages > unitsPerDay)
    findings.push({
      code: 'pages_unaffordable',
      severity: 'warning',
      text: `${Math.round(profile.alertsPerDay)} alerts a day fill up to ${pages} further pages (${heaping} x ${Math.round(profile.alertsPerDay)} / ${alertsOnPage}), ${floorUnits} polls keep gaps below ${formatDuration(maxIntervalMs)}, and there are ${unitsPerDay} units: alerts may wait for hours`,
    })
  const spendable = Math.floor((daySeconds * 1_000) / minIntervalMs)
  if (spendable < unitsPerDay)
    findings.push({
      code: 'units_unspendable',
      severity: 'info',
      text: `a poll every ${formatDuration(minIntervalMs)} at most takes ${spendable} units a day, so ${unitsPerDay - spendable} of the ${unitsPerDay} stay unused; a shorter minInterval would use them`,
    })
  return findings
}
