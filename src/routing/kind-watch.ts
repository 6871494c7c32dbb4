import type { Alert } from '../alert/alert.ts'
import { describeMatcher, fieldCharsMax, satisfies, valuesMax } from '../alert/match/match.ts'
import { inTurns, type Steps } from '../alert/match/turns.ts'
import { type Route, routeLabel } from '../alert/route.ts'
import { cut, oneLine } from '../alert/text/text.ts'
import { nearest } from '../config/mistakes/nearest.ts'
import { toError } from '../lib/errors.ts'
import { given } from '../lib/given.ts'
import { type KindStore, kindsMax } from '../store/source/kinds.ts'
import type { Logger } from '../telemetry/log.ts'

/**
 * Logs and shows a route that asks for a kind which no alert ever had. The API does not list its kinds, so check-config
 * cannot know them; the alerts so far show them. Nothing here stops or delays an alert.
 */
export interface KindWatch {
  /** Counts the kinds of new alerts, and logs once of each route that asks for another. */
  saw(alerts: readonly Alert[]): Promise<void>
  /** A sentence for each such route, by the source that it is shown at. Rejects when Redis is away. */
  notes(): Promise<ReadonlyMap<string, readonly string[]>>
}

interface KindWatchOptions {
  readonly routes: readonly Route[]
  readonly sources: readonly string[]
  readonly storeOf: (source: string) => KindStore
  /** Kinds of the account's rules, as far as they are known: an alert of them may still come. */
  readonly ruleKindsOf: (source: string) => Promise<readonly string[]>
  readonly log: Logger
}

/** Alerts by source, and by kind. */
type SeenKinds = ReadonlyMap<string, ReadonlyMap<string, number>>

interface UnseenKind {
  readonly source: string
  readonly text: string
}

/** A kind that is similar to a known one is probably a mistake; any other may just be rare. */
const alertsMin = { near: 10, far: 200 } as const
const listedMax = 10
const kindCharsMax = 100

export function createKindWatch(options: KindWatchOptions): KindWatch {
  const { routes, sources, storeOf, ruleKindsOf, log } = options
  const isAsked = routes.some(({ match }) => match.kind !== undefined)
  const logged = new Set<string>()
  let looking = false
  const look = async () => {
    const seen = await Promise.all(
      sources.map(async (source): Promise<[string, Map<string, number>]> => {
        const ofRules = (await ruleKindsOf(source)).map((kind): [string, number] => [kind, 0])
        return [source, new Map([...ofRules, ...(await storeOf(source).load())])]
      }),
    )
    return inTurns(unseenKinds(routes, new Map(seen)), { readers: true })
  }
  return {
    async saw(alerts) {
      try {
        for (const [source, own] of Map.groupBy(alerts, (alert) => alert.source))
          await storeOf(source).add(countsOf(own))
        if (!isAsked || alerts.length === 0 || looking) return
        looking = true
        for (const { source, text } of await look().finally(() => {
          looking = false
        })) {
          if (!logged.has(text)) log.warn({ source }, text)
          logged.add(text)
        }
      } catch (thrown) {
        log.debug({ reason: toError(thrown).name }, 'the kinds of alerts were not counted')
      }
    },
    async notes() {
      const unseen = isAsked ? await look() : []
      const bySource = Map.groupBy(unseen, ({ source }) => source)
      return new Map([...bySource].map(([source, own]) => [source, own.map(({ text }) => text)]))
    },
  }
}

/**
 * What routes ask for and no alert of their sources has had, once enough came to say so, and not too many kinds. Of more
 * than are counted, the first: to look for what was meant takes a millisecond or two, and a route may name thousands.
 */
export function* unseenKinds(routes: readonly Route[], seen: SeenKinds): Steps<UnseenKind[]> {
  const found: UnseenKind[] = []
  let unseen = 0
  for (const [index, { name, match }] of routes.entries()) {
    const { kind: wanted = [], source: from } = match
    const own: [string, ReadonlyMap<string, number>][] = []
    for (const each of seen)
      if (from === undefined || (yield* satisfies('source', [each[0]], from))) own.push(each)
    const kinds = [...new Set(own.flatMap(([, counts]) => [...counts.keys()].filter((kind) => kind !== '')))]
    const alerts = own.reduce((sum, [, counts]) => sum + [...counts.values()].reduce((a, b) => a + b, 0), 0)
    const [first] = own
    if (first === undefined || own.some(([, counts]) => counts.size >= kindsMax)) continue
    // More than is compared: then what is missing may be among them.
    if (kinds.length > valuesMax || kinds.join('').length > fieldCharsMax) continue
    for (const matcher of wanted) {
      if (matcher.op === 'not' || (yield* satisfies('kind', kinds, matcher))) continue
      unseen += 1
      if (unseen > kindsMax) break
      const near = matcher.op === 'equals' ? nearest(matcher.value, kinds) : undefined
      if (alerts < (near === undefined ? alertsMin.far : alertsMin.near)) continue
      const guess =
        near === undefined ? `they had ${kinds.slice(0, listedMax).join(', ')}` : `did you mean ${near}?`
      const label = routeLabel({ index, ...given({ name }) })
      const text = `${label} asks for kind ${describeMatcher(matcher)}, which no alert has had so far (${guess})`
      found.push({ source: first[0], text })
    }
  }
  return found
}

function countsOf(alerts: readonly Alert[]): Map<string, number> {
  const kinds = alerts.map(({ kind }) => cut(oneLine(kind), kindCharsMax)).filter((kind) => kind !== '')
  return new Map([...Map.groupBy(kinds, (kind) => kind)].map(([kind, all]) => [kind, all.length]))
}
