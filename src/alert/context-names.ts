import type { Alert } from './alert.ts'
import type { ContextName } from './context.ts'
import { matchAlert, type RuleLookup } from './match.ts'
import type { Route } from './route.ts'

/**
 * What the routes want to be known of an alert that goes to `sink`, each once. Mutes, silences and throttles are not asked:
 * the alert goes out, so some route let it pass. A rule that is not known counts as its route says.
 */
export function contextNamesFor(
  alert: Alert,
  sink: string,
  routes: readonly Route[],
  ruleOf: RuleLookup,
): readonly ContextName[] {
  const names = routes
    .filter(({ context = [], sinks }) => context.length > 0 && sinks.includes(sink))
    .filter((route) => {
      const { kind } = matchAlert(alert, route.match, ruleOf)
      return kind === 'matches' || (kind === 'rule_unknown' && route.whenRuleUnknown !== 'skip')
    })
    .flatMap(({ context = [] }) => context)
  return [...new Set(names)]
}
