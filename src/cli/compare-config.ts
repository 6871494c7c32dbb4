import { formatCount } from '../admin/page/words/en.ts'
import type { StoredAlert } from '../admin/views/delivery-view.ts'
import { alertKey, parseRow } from '../alert/alert.ts'
import { firedMsOf } from '../alert/job.ts'
import type { RuleLookup } from '../alert/match/match.ts'
import type { Config } from '../config/schema.ts'
import { formatDuration } from '../lib/duration.ts'
import { UserError } from '../lib/errors.ts'
import { type AssignDeps, createAssign } from '../routing/assign.ts'
import type { Throttles } from '../store/operators/throttle.ts'
import type { WithheldRecord } from '../store/walk/withheld.ts'
import { printable } from '../telemetry/printable.ts'
import type { Daemon } from './client/daemon.ts'
import { checkedPage, type ListPage } from './client/list.ts'
import { progressBar } from './output/progress.ts'
import { table } from './output/table.ts'

/** How another config would have routed the alerts that a bridge has kept: by route and by sink, which are new and which are missing. */
interface ConfigComparison {
  readonly alerts: number
  /** Alerts that were not compared, by a source that the config does not have: it may have another name there. */
  readonly withoutSource: Readonly<Record<string, number>>
  /** Alerts that other sinks would have got. */
  readonly changed: number
  readonly routes: readonly NameDifference[]
  readonly sinks: readonly NameDifference[]
}

interface NameDifference {
  readonly name: string
  readonly before: number
  readonly now: number
  /** `SOURCE.ID`. */
  readonly gained: readonly string[]
  readonly lost: readonly string[]
  /** Held back, by a mute or a throttle (and before also by a silence). */
  readonly heldBefore: number
  readonly heldNow: number
}

/** `dropped`: `SOURCE.ID` of alerts that are not among `stored`, since a dead letter was dropped, and with it where they had gone. */
interface StoredAlerts {
  readonly stored: readonly StoredAlert[]
  readonly dropped: readonly string[]
}

type StoredPage = ListPage<StoredAlert> & { readonly dropped?: readonly string[] }

/** All alerts that fired since then, the first to fire first. */
export async function readStored(daemon: Daemon, since: string): Promise<StoredAlerts> {
  const found: StoredAlert[] = []
  const dropped = new Set<string>()
  const bar = progressBar('reading')
  try {
    for (let cursor: string | undefined; ; ) {
      const answer = await daemon.get('/api/v1/alerts', { since, limit: '200', cursor })
      const page = checkedPage<StoredPage>(answer, cursor)
      for (const name of page.dropped ?? []) dropped.add(name)
      found.push(...page.data.filter((alert) => !dropped.has(alertKey(alert))))
      if (!page.cursor) return { stored: found.toReversed(), dropped: [...dropped].toReversed() }
      bar.show(0, 1, `${formatCount(found.length)} alerts`)
      cursor = page.cursor
    }
  } finally {
    bar.end()
  }
}

/** For all kept alerts together: 100,000 with thirty routes of a pattern each take about a minute. */
const comparingMsMax = 600_000

/**
 * Without silences, which are no part of a config. Mutes and throttles decide by when each alert was seen, or fired. Throws a UserError
 * where comparing takes too long.
 */
export async function compareConfig(
  stored: readonly StoredAlert[],
  { routes, sources }: Pick<Config, 'routes' | 'sources'>,
  ruleOf: RuleLookup,
  msMax = comparingMsMax,
): Promise<ConfigComparison> {
  const ending = new AbortController()
  const tooSlow = setTimeout(() => ending.abort(new UserError(tooSlowText(msMax))), msMax)
  try {
    return await compare(stored, { routes, sources }, ruleOf, ending.signal)
  } finally {
    clearTimeout(tooSlow)
  }
}

function tooSlowText(msMax: number): string {
  return `To compare the alerts of this span takes longer than ${formatDuration(msMax)}: a shorter span is needed, or fewer or simpler patterns.`
}

async function compare(
  stored: readonly StoredAlert[],
  { routes, sources }: Pick<Config, 'routes' | 'sources'>,
  ruleOf: RuleLookup,
  ending: AbortSignal,
): Promise<ConfigComparison> {
  const clock = { nowMs: 0 }
  let withheld: WithheldRecord['held'] = []
  const keep = async (records: readonly WithheldRecord[]) => {
    withheld = records.flatMap(({ held }) => held)
  }
  const assign = await createAssign({
    routes,
    readSilences: async () => [],
    rulesOf: (source) => ({ ruleOf: (id: string) => ruleOf(source, id), prepare: async () => {} }),
    throttles: simulatedThrottles(clock),
    withheldOf: () => ({ keep }) as ReturnType<AssignDeps['withheldOf']>,
  })()
  const found = { route: new Differences(), sink: new Differences() }
  const withoutSource: Record<string, number> = Object.create(null)
  let [alerts, changed] = [0, 0]
  for (const { source, id, seenAt, row, sent, held } of stored) {
    const parsed = parseRow(source, row)
    if (!Object.hasOwn(sources, source)) withoutSource[source] = (withoutSource[source] ?? 0) + 1
    if (!parsed.ok || !Object.hasOwn(sources, source)) continue
    alerts += 1
    const seenAtMs = Date.parse(seenAt)
    clock.nowMs = firedMsOf({ alert: parsed.alert, seenAtMs })
    withheld = []
    const [assignment] = await assign([parsed.alert], seenAtMs, ending)
    const now = assignment?.sinks ?? []
    // What an operator sent to a sink is of no route; from an earlier version no route is known.
    const before = sent.some((each) => each.routes !== null)
      ? sent.filter((each) => each.routes !== null)
      : sent
    const name = alertKey({ source, id })
    const isSame = found.sink.add(
      name,
      namesOr(before.map(({ sink }) => sink)),
      namesOr(now.map(({ sink }) => sink)),
    )
    if (!isSame) changed += 1
    const routesOf = (each: readonly { readonly routes: readonly string[] | null }[]) =>
      each.flatMap((one) => one.routes ?? ['(not known)'])
    found.route.add(name, namesOr(routesOf(before)), namesOr(routesOf(now)))
    found.route.addHeld(held, withheld)
  }
  return { alerts, withoutSource, changed, routes: found.route.all(), sinks: found.sink.all() }
}

function namesOr(names: readonly string[]): readonly string[] {
  return names.length === 0 ? ['(none)'] : names
}

/** By name of a route or of a sink. */
class Differences {
  readonly #found = new Map<
    string,
    { gained: string[]; lost: string[]; counts: [number, number, number, number] }
  >()

  #of(name: string) {
    const found = this.#found.get(name) ?? { gained: [], lost: [], counts: [0, 0, 0, 0] }
    this.#found.set(name, found)
    return found
  }

  /** Whether it is the same before and now. */
  add(alert: string, before: readonly string[], now: readonly string[]): boolean {
    const [was, is] = [new Set(before), new Set(now)]
    for (const name of new Set([...was, ...is])) {
      const { counts, gained, lost } = this.#of(name)
      if (was.has(name)) counts[0] += 1
      if (is.has(name)) counts[1] += 1
      if (!was.has(name)) gained.push(alert)
      if (!is.has(name)) lost.push(alert)
    }
    return was.size === is.size && [...was].every((name) => is.has(name))
  }

  addHeld(before: readonly { route: string | null }[], now: readonly { route: string | null }[]): void {
    for (const { route } of before) if (route !== null) this.#of(route).counts[2] += 1
    for (const { route } of now) if (route !== null) this.#of(route).counts[3] += 1
  }

  all(): NameDifference[] {
    return [...this.#found].map(([name, { counts, gained, lost }]) => {
      const [before, now, heldBefore, heldNow] = counts
      return { name, before, now, gained, lost, heldBefore, heldNow }
    })
  }
}

/** As those in Redis decide, at the time of the alert. */
function simulatedThrottles(clock: { readonly nowMs: number }): Throttles {
  const windows = new Map<string, { untilMs: number; heldBack: number }>()
  return {
    claim: async (claims) =>
      claims.map(({ window, perMs }) => {
        const name = JSON.stringify(window)
        const known = windows.get(name)
        if (known && known.untilMs > clock.nowMs) {
          known.heldBack += 1
          return { passes: false, untilMs: known.untilMs }
        }
        windows.set(name, { untilMs: clock.nowMs + perMs, heldBack: 0 })
        return { passes: true, heldBack: known?.heldBack ?? 0 }
      }),
  }
}

export function describeComparison(
  {
    alerts,
    withoutSource,
    changed,
    routes,
    sinks,
    dropped,
  }: ConfigComparison & Pick<StoredAlerts, 'dropped'>,
  since: string,
): string {
  const rows = (differences: readonly NameDifference[]) =>
    differences.map(({ name, before, now, gained, lost, heldBefore, heldNow }) => [
      ...[name, before, now].map(String),
      ...[`+${formatCount(gained.length)}`, `-${formatCount(lost.length)}`],
      heldBefore + heldNow === 0 ? '-' : `${formatCount(heldBefore)} → ${formatCount(heldNow)}`,
      [...gained.slice(0, 2).map((id) => `+${id}`), ...lost.slice(0, 2).map((id) => `-${id}`)].join(' ') ||
        '-',
    ])
  const columns = ['BEFORE', 'NOW', 'NEW', 'GONE', 'HELD BACK', 'SUCH AS']
  const count = `${formatCount(alerts)} ${alerts === 1 ? 'alert' : 'alerts'}`
  return [
    printable(`${count} since ${since}: other sinks would have got ${formatCount(changed)} of them`),
    ...Object.entries(withoutSource).map(([source, left]) =>
      printable(
        `${formatCount(left)} more ${left === 1 ? 'is' : 'are'} left out, since the config has no source ${source}`,
      ),
    ),
    ...(dropped.length === 0 ? [] : [printable(droppedText(dropped))]),
    ...(alerts === 0
      ? []
      : ['', table(['ROUTE', ...columns], rows(routes)), '', table(['SINK', ...columns], rows(sinks))]),
  ].join('\n')
}

function droppedText(names: readonly string[]): string {
  const [are, them] = names.length === 1 ? ['is', 'it'] : ['are', 'each']
  const more = names.length > namesMax ? ', …' : ''
  return `${formatCount(names.length)} more ${are} left out, since a dead letter of ${them} was dropped: ${names.slice(0, namesMax).join(', ')}${more}`
}

const namesMax = 3
