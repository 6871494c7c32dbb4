import type { Alert } from './alert.ts'
import type { ContextName } from './context.ts'
import type { AlertField } from './match/fields.ts'
import {
  alertValues,
  asksNothing,
  type Match,
  type Matched,
  type Miss,
  matchAlert,
  normaliseSymbol,
  type RuleLookup,
  valuesMax,
} from './match/match.ts'
import type { Steps } from './match/turns.ts'
import { type Mute, mutedUntil } from './mute.ts'
import { isSilenced, type Silence, silencesAt } from './silence.ts'

/**
 * Which sinks an alert goes to, and why it is withheld from others. Pure. Every route is decided on its own and every
 * route that takes the alert applies; each decision has its reason. Only a throttle needs Redis: the decision has the key
 * to ask for, and `withThrottles` applies the answers.
 */
export interface Route {
  readonly name?: string | undefined
  readonly match: Match
  /** Names of sinks, at least one. */
  readonly sinks: readonly string[]
  readonly mute?: readonly Mute[] | undefined
  readonly throttle?: Throttle | undefined
  /** What the API's other endpoints are asked of the alerts of this route. */
  readonly context?: readonly ContextName[] | undefined
  /** What to do where the match asks for a rule that is not known. Left out: `deliver`, because losing is worse. */
  readonly whenRuleUnknown?: 'deliver' | 'skip' | undefined
}

/** At most one alert in `per` (milliseconds) for each combination of these fields' values. */
interface Throttle {
  readonly per: number
  readonly by: readonly AlertField[]
}

/** What routes are decided by, beside the alert and the config. */
export interface RouteFacts {
  readonly nowMs: number
  readonly silences: readonly Silence[]
  readonly ruleOf: RuleLookup
}

export type RouteDecision = RouteRef & (Taken | Missed | Withheld)

type Taken =
  | {
      readonly taken: true
      readonly reason: 'takes_everything' | 'matched'
      readonly throttle?: ThrottleWindow
    }
  | {
      readonly taken: true
      readonly reason: 'rule_unknown'
      readonly ruleIds: readonly string[]
      readonly throttle?: ThrottleWindow
    }

type Missed =
  | { readonly taken: false; readonly reason: 'differs'; readonly misses: readonly Miss[] }
  | { readonly taken: false; readonly reason: 'rule_unknown'; readonly ruleIds: readonly string[] }

/** The route wants the alert, and its sinks do not get it by this route. */
type Withheld = { readonly taken: false } & WithheldReason

type WithheldReason =
  | {
      readonly reason: 'silenced'
      readonly silenceId: string
      readonly comment: string
      readonly untilMs: number
    }
  | { readonly reason: 'muted'; readonly untilMs: number }
  | { readonly reason: 'throttled'; readonly untilMs: number }

/** Alerts with the same `key` share a window of `perMs`. */
interface ThrottleWindow {
  readonly key: readonly string[]
  readonly perMs: number
}

interface RouteRef {
  /** Place in the config, from 0. */
  readonly index: number
  readonly name?: string
  readonly sinks: readonly string[]
}

export interface Routing {
  /** Each sink once, in the order in which the routes that took the alert name them. */
  readonly sinks: readonly string[]
  /** One for each route, in the order of the config. */
  readonly decisions: readonly RouteDecision[]
  /** Of these, the decisions that keep the alert from sinks which no other route sends it to; with these sinks only. */
  readonly withheld: readonly (RouteRef & Withheld)[]
}

export function* route(alert: Alert, routes: readonly Route[], facts: RouteFacts): Steps<Routing> {
  const silence = yield* silenceOf(alert, facts)
  const decisions: RouteDecision[] = []
  for (const [index, each] of routes.entries())
    decisions.push(yield* decide(alert, each, index, silence, facts))
  return routingOf(decisions)
}

/** What the sinks are once it is known which throttles let the alert pass: `heldUntil` by place of the route. */
export function withThrottles({ decisions }: Routing, heldUntil: ReadonlyMap<number, number>): Routing {
  return routingOf(
    decisions.map((decision) => {
      const untilMs = heldUntil.get(decision.index)
      if (!decision.taken || untilMs === undefined) return decision
      return { ...refOf(decision), taken: false, reason: 'throttled', untilMs }
    }),
  )
}

/** How people call a route. */
export function routeLabel({ index, name }: Pick<RouteRef, 'index' | 'name'>): string {
  return name ?? `routes[${index}]`
}

export function isWithheld(decision: RouteDecision): decision is RouteRef & Withheld {
  return !decision.taken && decision.reason !== 'differs' && decision.reason !== 'rule_unknown'
}

/** The values by which the throttle groups alerts; of a field with very many, the first. */
export function throttleValues(alert: Alert, { by }: Throttle): readonly string[] {
  return by.map((field) => {
    const values = alertValues(alert, field).slice(0, valuesMax)
    // Each account numbers its own rules.
    if (field === 'ruleId') return JSON.stringify([field, alert.source, ...values.toSorted()])
    const own = field === 'symbol' ? values.map(normaliseSymbol) : values
    return JSON.stringify([field, ...own.toSorted()])
  })
}

function routingOf(decisions: readonly RouteDecision[]): Routing {
  const sinks = new Set(decisions.flatMap((decision) => (decision.taken ? decision.sinks : [])))
  const withheld = decisions
    .filter(isWithheld)
    .map((decision) => ({ ...decision, sinks: decision.sinks.filter((sink) => !sinks.has(sink)) }))
  return { sinks: [...sinks], decisions, withheld: withheld.filter((decision) => decision.sinks.length > 0) }
}

function* silenceOf(alert: Alert, { silences, nowMs, ruleOf }: RouteFacts): Steps<Silence | undefined> {
  for (const silence of silences.length === 0 ? [] : silencesAt(silences, nowMs))
    if (yield* isSilenced(alert, silence.match, ruleOf)) return silence
  return undefined
}

function* decide(
  alert: Alert,
  route: Route,
  index: number,
  silence: Silence | undefined,
  facts: RouteFacts,
): Steps<RouteDecision> {
  const decided = { index, ...(route.name === undefined ? {} : { name: route.name }), sinks: route.sinks }
  const matched = yield* matchAlert(alert, route.match, facts.ruleOf)
  const missed = missedOf(matched, route)
  if (missed !== undefined) return { ...decided, ...missed }
  if (silence !== undefined) {
    const { id, comment, endsAtMs } = silence
    return { ...decided, taken: false, reason: 'silenced', silenceId: id, comment, untilMs: endsAtMs }
  }
  const untilMs = route.mute?.length ? mutedUntil(route.mute, facts.nowMs) : undefined
  if (untilMs !== undefined) return { ...decided, taken: false, reason: 'muted', untilMs }
  return { ...decided, ...takenOf(alert, route, matched) }
}

function missedOf(matched: Matched, { whenRuleUnknown }: Route): Missed | undefined {
  if (matched.kind === 'misses') return { taken: false, reason: 'differs', misses: matched.misses }
  if (matched.kind === 'rule_unknown' && whenRuleUnknown === 'skip')
    return { taken: false, reason: 'rule_unknown', ruleIds: matched.ruleIds }
  return undefined
}

function takenOf(alert: Alert, route: Route, matched: Matched): Taken {
  const { throttle } = route
  const window = throttle && { throttle: { key: throttleValues(alert, throttle), perMs: throttle.per } }
  if (matched.kind === 'rule_unknown')
    return { taken: true, reason: 'rule_unknown', ruleIds: matched.ruleIds, ...window }
  return { taken: true, reason: asksNothing(route.match) ? 'takes_everything' : 'matched', ...window }
}

function refOf({ index, name, sinks }: RouteRef): RouteRef {
  return { index, ...(name === undefined ? {} : { name }), sinks }
}
