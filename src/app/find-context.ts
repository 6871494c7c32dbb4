import type { Alert } from '../alert/alert.ts'
import type { ContextName } from '../alert/context.ts'
import type { DeliveryJob } from '../alert/job.ts'
import { asksOfRule, matchAlert, type RuleLookup, satisfies } from '../alert/match/match.ts'
import { inTurns } from '../alert/match/turns.ts'
import type { Route } from '../alert/route.ts'
import type { Config } from '../config/schema.ts'
import type { FindContext } from '../delivery/attempt/deliver.ts'
import type { Clock } from '../lib/clock.ts'
import type { ActiveConfig } from './active-config.ts'
import { valuesOf } from './built-parts.ts'
import { createContextWaits } from './context-waits.ts'

/** What the routes of the config in force ask of an alert, also of one that was queued under another config. */
export function findContextBy(active: () => ActiveConfig, clock: Clock): FindContext {
  const waits = createContextWaits(clock)
  return (job, { isFirst, waitMsMax, signals, queue }) => {
    const { config, sources } = active()
    const { alert, sink, seenAtMs } = job
    const routes = config.routes.filter(({ context, sinks }) => context.length > 0 && sinks.includes(sink))
    const source = routes.length === 0 ? undefined : valuesOf(sources).get(alert.source)
    if (source === undefined) return undefined
    const { rules, context } = source
    const find = async () => {
      // A process that only sends reads what another has paid for.
      if (routes.some(({ match }) => asksOfRule(match))) await rules.adopt(alert.ruleIds)
      const names = await namesFor(alert, routes, (_source, ruleId) => rules.ruleOf(ruleId))
      if (names.length === 0) return undefined
      const signal = AbortSignal.any([...signals])
      const deadlineMs = queue.isFull ? await shortestDeadline(job, config) : deadlineOf(config, alert.source)
      const wait = waits.begin(sink, queue.emptyMs, deadlineMs)
      try {
        const waitMs = wait.leftMs
        return await context.find(alert, names, { seenAtMs, mayBuy: isFirst, waitMs, waitMsMax, signal })
      } finally {
        wait.end()
      }
    }
    return find()
  }
}

function deadlineOf({ sources }: Config, source: string): number {
  return sources[source]?.context.deadline ?? 0
}

/** Of all sources whose alerts may be behind this one: none is to be later than by its own source's deadline. */
async function shortestDeadline({ alert, sink }: DeliveryJob, config: Config): Promise<number> {
  const deadlines = [deadlineOf(config, alert.source)]
  const routes = config.routes.filter(({ sinks }) => sinks.includes(sink))
  for (const source of Object.keys(config.sources))
    for (const { match } of routes)
      if (match.source === undefined || (await inTurns(satisfies('source', [source], match.source)))) {
        deadlines.push(deadlineOf(config, source))
        break
      }
  return Math.min(...deadlines)
}

/**
 * The names of context that the routes which take an alert ask for, each once. Mutes, silences and throttles are not checked: the
 * alert goes out, so some route let it pass. A rule that is not known counts as its route says.
 */
async function namesFor(
  alert: Alert,
  routes: readonly Route[],
  ruleOf: RuleLookup,
): Promise<readonly ContextName[]> {
  const names: ContextName[] = []
  for (const { match, whenRuleUnknown, context = [] } of routes) {
    const { kind } = await inTurns(matchAlert(alert, match, ruleOf))
    if (kind === 'matches' || (kind === 'rule_unknown' && whenRuleUnknown !== 'skip')) names.push(...context)
  }
  return [...new Set(names)]
}
