import type { Alert } from './alert.ts'
import { type Match, type Miss, missesOf } from './match.ts'

/**
 * Which sinks an alert goes to. Pure. Every route is decided on its own and every route that takes the alert applies;
 * each decision carries its reason, so that whatever else may hold a route back (a mute interval, a silence) becomes a
 * member of `RouteDecision` and is explained like the rest.
 */
export interface Route {
  readonly name?: string | undefined
  readonly match: Match
  /** Names of sinks, at least one. */
  readonly sinks: readonly string[]
}

export type RouteDecision =
  | ({ readonly taken: true; readonly reason: 'takes_everything' | 'matched' } & Decided)
  | ({ readonly taken: false; readonly reason: 'differs'; readonly misses: readonly Miss[] } & Decided)

export interface Routing {
  /** Each sink once, in the order in which the routes that took the alert name them. */
  readonly sinks: readonly string[]
  /** One for each route, in the order of the config. */
  readonly decisions: readonly RouteDecision[]
}

export function route(alert: Alert, routes: readonly Route[]): Routing {
  const decisions = routes.map((each, index) => decide(alert, each, index))
  const sinks = new Set(decisions.flatMap((decision) => (decision.taken ? decision.sinks : [])))
  return { sinks: [...sinks], decisions }
}

interface Decided {
  /** Place in the config, from 0. */
  readonly index: number
  readonly name?: string
  readonly sinks: readonly string[]
}

function decide(alert: Alert, route: Route, index: number): RouteDecision {
  const decided = { index, ...(route.name === undefined ? {} : { name: route.name }), sinks: route.sinks }
  const misses = missesOf(alert, route.match)
  if (misses.length > 0) return { taken: false, reason: 'differs', misses, ...decided }
  const wantsAll = Object.values(route.match).every((matchers) => matchers === undefined)
  return { taken: true, reason: wantsAll ? 'takes_everything' : 'matched', ...decided }
}
