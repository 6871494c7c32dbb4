import type { Alert } from '../alert/alert.ts'
import { contextUnits } from '../alert/context.ts'
import type { Miss } from '../alert/match/match.ts'
import { describeMute } from '../alert/mute.ts'
import { isWithheld, type Route, type RouteDecision, type Routing } from '../alert/route.ts'
import { oneLine } from '../alert/text/text.ts'
import { formatDuration } from '../lib/duration.ts'

/** The text that `explain` prints: every route with its decision and the reason, then the result for every sink. */
interface ExplainInput {
  readonly alert: Alert
  readonly routing: Routing
  readonly routes: readonly Route[]
  readonly sinks: readonly string[]
  readonly atMs: number
  /** Whether the silences and rules were read from a running bridge. */
  readonly asked: boolean
}

export function explainText({ alert, routing, routes, sinks, atMs, asked }: ExplainInput): string {
  const reached = routing.sinks
  const heldOnly = [...new Set(routing.withheld.flatMap((decision) => decision.sinks))]
  const idle = sinks.filter((name) => !reached.includes(name) && !heldOnly.includes(name))
  const symbol = alert.symbol === null ? 'none' : oneLine(alert.symbol)
  const lines = [
    `${alert.source}.${alert.id}: kind ${oneLine(alert.kind)}, symbol ${symbol}, rules ${listed(alert.ruleIds)}`,
    ...routing.decisions.flatMap((decision) => describeDecision(decision, routes[decision.index])),
    `sent to: ${listed(reached)}`,
    ...(heldOnly.length > 0 ? [`held back from: ${listed(heldOnly)}`] : []),
    ...(idle.length > 0 ? [`not sent to: ${listed(idle)}`] : []),
    `as of ${iso(atMs)}, ${asked ? 'with' : 'without'} the silences and rules of a running bridge${asked ? '' : ' (--url)'}`,
  ]
  return `${lines.join('\n')}\n`
}

function describeDecision(decision: RouteDecision, route: Route | undefined): string[] {
  const label = `routes[${decision.index}]${decision.name === undefined ? '' : ` (${decision.name})`}`
  const word = decision.taken ? 'yes ' : isWithheld(decision) ? 'held' : 'no  '
  return [
    `  ${word} ${label} → ${listed(decision.sinks)}: ${reasonOf(decision)}`,
    ...(route === undefined || (!decision.taken && !isWithheld(decision)) ? [] : limitsOf(route)),
  ]
}

function reasonOf(decision: RouteDecision): string {
  switch (decision.reason) {
    case 'takes_everything':
      return 'takes everything'
    case 'matched':
      return 'matches'
    case 'differs':
      return decision.misses.map(describeMiss).join('; ')
    case 'rule_unknown': {
      const follows = decision.taken ? 'it is delivered' : 'it is skipped'
      return `all but the rule matches; unknown rule ${listed(decision.ruleIds)}, so ${follows} (whenRuleUnknown)`
    }
    case 'muted':
      return `muted until ${iso(decision.untilMs)}`
    case 'silenced': {
      const comment = decision.comment === '' ? '' : ` (${oneLine(decision.comment)})`
      return `silenced by ${decision.silenceId} until ${iso(decision.untilMs)}${comment}`
    }
    case 'throttled':
      return `throttled until ${iso(decision.untilMs)}`
    default:
      return decision satisfies never
  }
}

/** The mutes and the throttle of the route, which may withhold alerts at another time, and what it adds to them. */
function limitsOf({ mute = [], throttle, context = [] }: Route): string[] {
  const mutes = mute.map((each) => `         mute: ${describeMute(each)}`)
  const wanted = [...new Set(context)].map((name) => `${name} (${contextUnits(name)})`).join(', ')
  const shown = wanted === '' ? mutes : [...mutes, `         context, for units: ${wanted}`]
  if (throttle === undefined) return shown
  const by = throttle.by.join(', ')
  return [...shown, `         throttle: at most one in ${formatDuration(throttle.per)} for each ${by}`]
}

function describeMiss({ field, found, wanted }: Miss): string {
  return `${field} is ${listed(found)}, wanted ${wanted.map(oneLine).join(' or ')}`
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** Text of the API is made safe for a terminal. */
function listed(values: readonly string[]): string {
  return values.length === 0 ? 'none' : values.map(oneLine).join(', ')
}
