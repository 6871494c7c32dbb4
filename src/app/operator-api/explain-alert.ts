import type { ExplanationView } from '../../admin/views/delivery-view.ts'
import { type Alert, alertKey, noticeSource, parseRow } from '../../alert/alert.ts'
import { ruleLookup } from '../../alert/match/fields.ts'
import { inTurns } from '../../alert/match/turns.ts'
import { route } from '../../alert/route.ts'
import { openReader } from '../../delivery/records/search.ts'
import { UserError } from '../../lib/errors.ts'
import { explainText } from '../../routing/explain-text.ts'
import type { ActiveConfig } from '../active-config.ts'
import { readerOptions } from './delivery-search.ts'
import { isoOf } from './views.ts'

/**
 * Which routes of the config in force would take an alert that has a record, with the silences and rules of now, and why the others
 * would not; undefined where nothing is kept of it. Throttles are not asked: they would count it. Throws a UserError where comparing takes
 * too long, and for a notice, since no route decides where one goes.
 */
export async function explainAlert(
  config: ActiveConfig,
  about: { readonly source: string; readonly id: number },
  atMs: number,
): Promise<ExplanationView | undefined> {
  const alert = await storedAlert(config, about)
  if (alert === undefined) return undefined
  if (alert.source === noticeSource) throw new UserError(noticeText(alertKey(alert)))
  const { routes, sinks } = config.config
  const [silences, rules] = await Promise.all([
    config.routing.silences.list(atMs),
    config.routing.knownRules(),
  ])
  const held = silences.flatMap(({ match, ...rest }) => (match === undefined ? [] : [{ ...rest, match }]))
  const ending = new AbortController()
  const tooSlow = setTimeout(() => ending.abort(new UserError(tooSlowText)), comparingMs)
  const steps = route(alert, routes, { nowMs: atMs, silences: held, ruleOf: ruleLookup(rules) })
  const routing = await inTurns(steps, { readers: true, signal: ending.signal }).finally(() =>
    clearTimeout(tooSlow),
  )
  const { source, id, kind, symbol, ruleIds } = alert
  return {
    alert: { source, id, kind, symbol, ruleIds },
    at: isoOf(atMs),
    sinks: routing.sinks,
    decisions: routing.decisions,
    text: explainText({ alert, routing, routes, sinks: Object.keys(sinks), atMs, asked: true }),
  }
}

const noticeText = (name: string) =>
  `${name} is a notice of the bridge itself: it goes to the sinks of operators, whatever routes and silences say.`

/** Less than an answer may take, so that it says what was slow. */
const comparingMs = 7_000
const tooSlowText =
  'To compare this alert with all routes and silences takes longer than 7 seconds: others ask too, or fewer or simpler patterns are needed.'

async function storedAlert(
  config: ActiveConfig,
  about: { readonly source: string; readonly id: number },
): Promise<Alert | undefined> {
  const name = alertKey(about)
  const reader = await openReader(readerOptions(config))
  for await (const part of reader.read([{ name, atMs: 0 }], {}))
    for (const found of part) {
      const parsed = parseRow(about.source, found.row())
      if (parsed.ok) return parsed.alert
    }
  return undefined
}
