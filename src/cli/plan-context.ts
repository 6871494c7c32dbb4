import { type ContextName, contextUnits, contextUnitsMax, macroPrefix } from '../alert/context.ts'
import { satisfies } from '../alert/match.ts'
import type { Config } from '../config/schema.ts'

/** What the context of its routes costs a source a day, at the most: as if each alert took all routes and was of another instrument. */
export interface ContextCosts {
  readonly names: Readonly<Partial<Record<ContextName, number>>>
  /** Of all of them, before any limit. */
  readonly units: number
  /** What it may use of `context.unitsShare`; a larger need is skipped. */
  readonly unitsMax: number
  /** What polls have at the least. */
  readonly unitsForPolls: number
}

/** undefined where no route asks for context of this source's alerts. */
export function contextCosts(
  config: Config,
  source: string,
  plan: { readonly unitsPerDay: number; readonly alertsPerDay: number },
): ContextCosts | undefined {
  const wanted = config.routes
    .filter(({ match }) => match.source?.some((each) => satisfies('source', [source], each)) ?? true)
    .flatMap(({ context }) => context)
  if (wanted.length === 0) return undefined
  const costs = [...new Set(wanted)].map((name) => [name, unitsADay(name, plan.alertsPerDay)] as const)
  const units = costs.reduce((sum, [, each]) => sum + each, 0)
  const unitsMax = contextUnitsMax(plan.unitsPerDay, config.sources[source]?.context.unitsShare ?? 0)
  return {
    names: Object.fromEntries(costs),
    units,
    unitsMax,
    unitsForPolls: plan.unitsPerDay - Math.min(units, unitsMax),
  }
}

export function describeContextCosts({ names, units, unitsMax, unitsForPolls }: ContextCosts): string {
  const each = Object.entries(names).map(([name, cost]) => `${name} ${cost}`)
  const share =
    units > unitsMax
      ? `context.unitsShare allows ${unitsMax}, the rest is left out of messages`
      : `context.unitsShare allows ${unitsMax}`
  return `  context costs at most ${units} units a day (${each.join(', ')}): ${share}; polls have at least ${unitsForPolls}\n`
}

function unitsADay(name: ContextName, alertsPerDay: number): number {
  // A series is bought once an hour for all alerts.
  const purchases = name.startsWith(macroPrefix) ? Math.min(24, alertsPerDay) : alertsPerDay
  return Math.ceil(purchases * contextUnits(name))
}
