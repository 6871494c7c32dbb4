import { type ContextName, contextUnits, contextUnitsMax, macroPrefix } from '../../alert/context.ts'
import { satisfies } from '../../alert/match/match.ts'
import { atOnce } from '../../alert/match/turns.ts'
import { contextBesidePolls, sharingWith } from '../../config/checks/accounts.ts'
import type { Config } from '../../config/schema.ts'

/**
 * What the context of its routes costs a source on the busiest day of a week: as if each alert took all routes and was of another
 * instrument, since the plan learns when alerts come and not of what. A search for a price may have pages, so a day of many such
 * alerts can cost more; never more than `unitsMax`.
 */
export interface ContextCosts {
  readonly names: Readonly<Partial<Record<ContextName, number>>>
  /** Of all of them, before any limit. */
  readonly units: number
  /** An equal part of what `context.unitsShare`, and the slowest pace of polls, allow the account; a larger need is skipped. */
  readonly unitsMax: number
  /** What that leaves to polls. */
  readonly unitsForPolls: number
}

/** undefined where no route asks for context of this source's alerts. */
export function contextCosts(
  config: Config,
  source: string,
  plan: { readonly unitsPerDay: number; readonly unitsOfAccount: number; readonly alertsOfDay: () => number },
): ContextCosts | undefined {
  const wanted = config.routes
    .filter(({ match }) => match.source === undefined || atOnce(satisfies('source', [source], match.source)))
    .flatMap(({ context }) => context)
  if (wanted.length === 0) return undefined
  const alerts = plan.alertsOfDay()
  const costs = [...new Set(wanted)].map((name) => [name, unitsOfDay(name, alerts)] as const)
  const units = costs.reduce((sum, [, each]) => sum + each, 0)
  const { context } = config.sources[source] ?? {}
  const sharing = sharingWith(config.sources, source)
  const besidePolls = contextBesidePolls(sharing, plan.unitsOfAccount)
  const shareMax = contextUnitsMax(plan.unitsOfAccount, context?.unitsShare ?? 0)
  const unitsMax = Math.floor(Math.min(shareMax, besidePolls) / Math.max(1, sharing.length))
  return {
    names: Object.fromEntries(costs),
    units,
    unitsMax,
    unitsForPolls: plan.unitsPerDay - Math.min(units, unitsMax),
  }
}

export function describeContextCosts({ names, units, unitsMax, unitsForPolls }: ContextCosts): string {
  const each = Object.entries(names).map(([name, cost]) => `${name} ${cost}`)
  const cost = `about ${units} units on the busiest day of a week where no two alerts are of one instrument, else less (${each.join(', ')})`
  const more = units > unitsMax ? ', what needs more is left out of messages' : ''
  const share = `context.unitsShare and polls allow ${unitsMax}${more}`
  return `  context costs ${cost}: ${share}; polls have at least about ${unitsForPolls}\n`
}

function unitsOfDay(name: ContextName, alerts: number): number {
  // A series is bought once an hour for all alerts.
  const purchases = name.startsWith(macroPrefix) ? Math.min(24, alerts) : alerts
  return Math.ceil(purchases * contextUnits(name))
}
