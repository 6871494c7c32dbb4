import { type Alert, alertKey } from '../alert/alert.ts'
import type { Assign, AssignedSink, Assignment } from '../alert/assignment.ts'
import { asksOfRule } from '../alert/match/match.ts'
import { inTurns } from '../alert/match/turns.ts'
import {
  type Route,
  type RouteFacts,
  type Routing,
  route,
  routeLabel,
  withThrottles,
} from '../alert/route.ts'
import type { Silence } from '../alert/silence.ts'
import type { Claim, Throttles } from '../store/operators/throttle.ts'
import type { WithheldEntry, WithheldRecord, WithheldStore } from '../store/walk/withheld.ts'
import type { RuleBook } from './rules.ts'
import type { ReadSilences } from './silences.ts'

/**
 * From alerts to sinks: reads rules where they are asked of, decides the routes, asks the throttles, and stores a record of
 * each withheld alert before it returns. For the same alerts the throttles decide the same again.
 */
export interface AssignDeps {
  readonly routes: readonly Route[]
  readonly readSilences: ReadSilences
  readonly rulesOf: (source: string) => Pick<RuleBook, 'ruleOf' | 'prepare'>
  readonly throttles: Throttles
  readonly withheldOf: (source: string) => WithheldStore
}

/** Returns what is to be called before a page is read: it reads the silences, and returns what assigns the page's alerts. */
export function createAssign(deps: AssignDeps): () => Promise<Assign> {
  return async () => {
    const silences = await deps.readSilences()
    const asksOfRules = [...deps.routes, ...silences].some(({ match }) => asksOfRule(match))
    return (alerts, seenAtMs, ending) => assign({ ...deps, silences, asksOfRules, ending }, alerts, seenAtMs)
  }
}

interface PageDeps extends AssignDeps {
  readonly silences: readonly Silence[]
  /** A route or a silence asks of the rules of an alert. */
  readonly asksOfRules: boolean
  readonly ending: AbortSignal | undefined
}

async function assign(
  deps: PageDeps,
  alerts: readonly Alert[],
  seenAtMs: number,
): Promise<readonly Assignment[]> {
  if (alerts.length === 0) return []
  const facts = await factsOf(deps, alerts, seenAtMs)
  const decided: RoutedAlert[] = []
  for (const alert of alerts)
    decided.push({
      alert,
      routing: await inTurns(route(alert, deps.routes, facts), { signal: deps.ending }),
    })
  const routed = await throttle(deps, decided)
  const records = Map.groupBy(
    routed.flatMap(({ alert, routing }) => recordOf(alert, routing, seenAtMs)),
    ({ source }) => source,
  )
  for (const [source, own] of records) await deps.withheldOf(source).keep(own.map(({ record }) => record))
  return routed.map(({ routing, passed }) => assignmentOf(routing, passed))
}

interface RoutedAlert {
  readonly alert: Alert
  readonly routing: Routing
}

interface ThrottledAlert extends RoutedAlert {
  /** What was held back before, by place of the route. */
  readonly passed: ReadonlyMap<number, number>
}

async function factsOf(deps: PageDeps, alerts: readonly Alert[], nowMs: number): Promise<RouteFacts> {
  if (deps.asksOfRules) {
    for (const [source, own] of Map.groupBy(alerts, (alert) => alert.source))
      await deps.rulesOf(source).prepare([...new Set(own.flatMap(({ ruleIds }) => ruleIds))])
  }
  return {
    nowMs,
    silences: deps.silences,
    ruleOf: (source, ruleId) => deps.rulesOf(source).ruleOf(ruleId),
  }
}

/** Oldest first, so that of a page the oldest passes. */
async function throttle(deps: AssignDeps, decided: readonly RoutedAlert[]): Promise<ThrottledAlert[]> {
  const asked = decided.flatMap(({ alert, routing }, place) =>
    claimsOf(alert, routing, deps.routes).map((each) => ({ ...each, place })),
  )
  const answers = asked.length === 0 ? [] : await deps.throttles.claim(asked.map(({ claim }) => claim))
  return decided.map(({ alert, routing }, place) => {
    const held = new Map<number, number>()
    const passed = new Map<number, number>()
    for (const [index, answer] of answers.entries()) {
      const each = asked[index]
      if (each === undefined || each.place !== place) continue
      if (answer.passes) passed.set(each.index, answer.heldBack)
      else held.set(each.index, answer.untilMs)
    }
    return { alert, routing: held.size === 0 ? routing : withThrottles(routing, held), passed }
  })
}

function claimsOf(alert: Alert, { decisions }: Routing, routes: readonly Route[]) {
  return decisions.flatMap((decision): { index: number; claim: Claim }[] => {
    if (!decision.taken || decision.throttle === undefined) return []
    const { index } = decision
    const { key, perMs } = decision.throttle
    const window = [identityOf(routes[index]), String(perMs), ...key]
    return [{ index, claim: { window, alert: alertKey(alert), perMs } }]
  })
}

/** Identifies a route over reloads: its place changes when another route is put before it. */
function identityOf(route: Route | undefined): string {
  return JSON.stringify([route?.name, route?.match, route?.sinks])
}

function assignmentOf({ sinks, decisions, withheld }: Routing, passed: ThrottledAlert['passed']): Assignment {
  const shares = sinks.map((sink): AssignedSink => {
    const takers = decisions.filter((decision) => decision.taken && decision.sinks.includes(sink))
    const routes = takers.map(routeLabel)
    const counts = takers.map(({ index }) => passed.get(index))
    // This sink got every alert by a route without a throttle.
    const heldBack = counts.includes(undefined) ? 0 : Math.max(0, ...counts.map((count = 0) => count))
    return heldBack > 0 ? { sink, routes, heldBack } : { sink, routes }
  })
  return { sinks: shares, withheld: [...new Set(withheld.map(({ reason }) => reason))] }
}

function recordOf(alert: Alert, { sinks, withheld }: Routing, seenAtMs: number) {
  const held = withheld.map((decision): WithheldEntry => {
    const { reason, untilMs, sinks: missed } = decision
    const silence = reason === 'silenced' ? { silenceId: decision.silenceId, comment: decision.comment } : {}
    return { route: routeLabel(decision), sinks: [...missed], reason, untilMs, ...silence }
  })
  const unrouted: WithheldEntry[] =
    sinks.length === 0 && held.length === 0 ? [{ route: null, sinks: [], reason: 'unrouted' }] : []
  const entries = [...held, ...unrouted]
  if (entries.length === 0) return []
  const record: WithheldRecord = { v: 1, seenAtMs, row: { ...alert.row }, held: entries }
  return [{ source: alert.source, record }]
}
