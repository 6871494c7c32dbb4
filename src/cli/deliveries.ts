import { type Command, Option } from 'commander'
import { formatCount } from '../admin/page/words/en.ts'
import {
  type AlertStory,
  type DeliveryRow,
  type DeliveryStory,
  rowStates,
  type SinkHold,
} from '../admin/views/delivery-view.ts'
import { printable } from '../telemetry/printable.ts'
import { instantOption } from './arguments/instant.ts'
import { alertOf, countOption, UsageError } from './arguments/usage.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { checkedPage, countDefault, type ListPage, pageMax } from './client/list.ts'
import { untilStopped, watch } from './client/watch.ts'
import { namedCommand } from './command-texts.ts'
import {
  isolated,
  print,
  printableLine,
  printError,
  printJson,
  sentence,
  withoutText,
} from './output/output.ts'
import { progressBar } from './output/progress.ts'
import { table } from './output/table.ts'

interface Options extends DaemonOptions, Filter {
  readonly limit: number
  readonly cursor?: string
  readonly follow?: boolean
}

interface Filter {
  readonly state?: string
  readonly sink?: string
  readonly source?: string
  readonly symbol?: string
  readonly kind?: string
  readonly rule?: string
  readonly since?: string
  readonly until?: string
}

/** `deliveries [ID]`: the deliveries of the alerts that fired last, or the whole story of one alert. */
export function deliveriesCommand(): Command {
  return daemonCommand(namedCommand('deliveries'))
    .argument('[id]', 'SOURCE.ID, such as main.4711')
    .addOption(new Option('--state <state>', 'only those in this state').choices(rowStates))
    .option('--sink <sink>', 'only those of this sink')
    .option('--source <source>', 'only those of this source')
    .option('--symbol <text>', 'only those of this symbol; * and ? stand for any text, any letter')
    .option('--kind <kind>', 'only those of this kind')
    .option('--rule <id>', 'only those of this alert rule')
    .option(
      '--since <time>',
      'only those that fired at or after this time (ISO, or how long ago: 2h)',
      instantOption('--since'),
    )
    .option('--until <time>', 'and at or before this one', instantOption('--until'))
    .option('--limit <count>', 'how many', countOption('--limit', listMax), countDefault)
    .option('--cursor <text>', 'those after a list that was cut, which named it')
    .option('--follow', 'the newest, and then every delivery whose state changes, until Ctrl-C')
    .action(async (id: string | undefined, options: Options) => {
      const daemon = connectDaemon(options)
      const { follow, limit, cursor, state, sink, source, symbol, kind, rule, since, until, json } = options
      const filter = { state, sink, source, symbol, kind, rule, since, until }
      if (id !== undefined) {
        if (follow) throw new UsageError('--follow shows all deliveries: give it no id.')
        const { source, id: number } = alertOf(id)
        const answer = await daemon.get(`/api/v1/deliveries/${source}/${number}`)
        const { data } = answer as { data: AlertStory }
        return json ? printJson(data) : print(describeAlert(data))
      }
      if (follow) {
        if (cursor !== undefined)
          throw new UsageError('--follow begins with the newest: give it no --cursor.')
        const show = (row: DeliveryRow) => print(json ? JSON.stringify(row) : describeRow(row))
        // What changed last: an old alert that is tried again, too. Of other conditions, the last to fire.
        const isSearch = state === 'held' || [source, symbol, kind, rule, since, until].some((each) => each)
        const order = isSearch ? {} : { order: 'changed' }
        const look = followed(async (count) => {
          const query = { ...filter, ...order, limit: String(count) }
          return ((await daemon.get('/api/v1/deliveries', query)) as DeliveryPage).data
        }, limit)
        return watch(async () => (await look(isSearch)).forEach(show), followEveryMs, untilStopped())
      }
      const { rows, more } = await listed(daemon, filter, { limit, cursor })
      return json ? printJson(rows) : print([describeRows(rows), ...more].join('\n'))
    })
}

/** Reads page by page, the last to fire first, and returns a line when there are more. One page beyond them is only counted. */
async function listed(
  daemon: Daemon,
  filter: Readonly<Record<string, string | undefined>>,
  { limit, cursor: first }: { readonly limit: number; readonly cursor: string | undefined },
) {
  const rows: DeliveryRow[] = []
  let looked = 0
  const bar = progressBar('looking')
  try {
    for (let cursor = first; ; ) {
      const isCut = rows.length >= limit
      const count = String(isCut ? pageMax : Math.min(pageMax, limit - rows.length))
      const answer = await daemon.get('/api/v1/deliveries', { ...filter, limit: count, cursor })
      const page = checkedPage<DeliveryPage>(answer, cursor)
      if (isCut) return { rows, more: restText(rows, page, { rest: cursor, isRest: first !== undefined }) }
      rows.push(...page.data)
      looked += page.looked
      if (!page.cursor) return { rows, more: [] }
      bar.show(rows.length, limit, `${formatCount(looked)} alerts looked at`)
      cursor = page.cursor
    }
  } finally {
    bar.end()
  }
}

/**
 * `the newest 50 of 131`; `of at least 550` where not all were counted. The rest is named by the cursor that follows the rows: a time
 * would repeat rows of the last instant, or never pass one that has more of them than are shown.
 */
function restText(
  rows: readonly DeliveryRow[],
  { data, cursor }: DeliveryPage,
  { rest, isRest }: { readonly rest: string | undefined; readonly isRest: boolean },
): string[] {
  if (data.length === 0 && !cursor) return []
  const all = `${cursor ? 'at least ' : ''}${formatCount(rows.length + data.length)}`
  const older = `--limit shows more, --cursor ${rest} older ones`
  return [printable(`the ${isRest ? 'next' : 'newest'} ${formatCount(rows.length)} of ${all}: ${older}`)]
}

interface DeliveryPage extends ListPage<DeliveryRow> {
  readonly looked: number
}

const listMax = 100_000
const followEveryMs = 1_000

/**
 * Each look gives what changed since the last one, the oldest first; the first look the newest `limit`. Few rows are read, and all that
 * the bridge lists at once where most of these changed, or `everything` is looked at: a change of an old row may be far down in a search.
 */
function followed(read: (count: number) => Promise<readonly DeliveryRow[]>, limit: number) {
  const { isChanged, take } = changedRows()
  let isFirst = true
  let wasCut = false
  return async (everything: boolean): Promise<readonly DeliveryRow[]> => {
    const few = isFirst || everything ? undefined : await read(countDefault)
    const areMost = few === undefined || few.filter(isChanged).length > countDefault / 2
    const rows = areMost ? await read(pageMax) : few
    const isCut = !isFirst && rows.length >= pageMax && rows.every(isChanged)
    if (isCut && !wasCut)
      printError(`More than ${pageMax} changed at once: the newest follow; \`deliveries\` lists the others.`)
    wasCut = isCut
    const news = take(rows)
    const shown = isFirst ? news.slice(-limit) : news
    isFirst = false
    return shown
  }
}

/** `take` gives what is new, or in another state than when it was last given, the oldest first. */
export function changedRows() {
  const known = new Map<string, string>()
  /** One that ended again is news, too: it was sent again meanwhile. */
  const standsOf = ({ state, attempts, reason, updatedAt }: DeliveryRow) =>
    `${state} ${attempts} ${reason} ${state === 'delivered' || state === 'dead' ? updatedAt : ''}`
  const isChanged = (row: DeliveryRow) => known.get(keyOf(row)) !== standsOf(row)
  const take = (rows: readonly DeliveryRow[]): readonly DeliveryRow[] => {
    const news = rows.toReversed().filter((row) => {
      if (!isChanged(row)) return false
      const key = keyOf(row)
      known.delete(key)
      known.set(key, standsOf(row))
      return true
    })
    for (const key of known.keys()) {
      if (known.size <= knownMax) break
      known.delete(key)
    }
    return news
  }
  return { isChanged, take }
}

/** Many times the rows of an answer. */
const knownMax = 10_000

/** What several routes hold back from one sink has a row for each of them. */
function keyOf(row: DeliveryRow): string {
  return row.state === 'held' ? `${nameOf(row)} ${row.reason}` : nameOf(row)
}

function nameOf({ source, id, sink, target }: DeliveryRow): string {
  return `${source}.${id} → ${target ? `${sink} (${target})` : sink}`
}

function describeRow(row: DeliveryRow): string {
  const { updatedAt, state, attempts, reason, headline } = row
  const tries = attempts > 1 ? ` ×${attempts}` : ''
  const why = reason ? ` (${isolated(reason)})` : ''
  return printableLine(`${updatedAt ?? '-'}  ${nameOf(row)}  ${state}${tries}${why}  ${isolated(headline)}`)
}

export function describeRows(rows: readonly DeliveryRow[]): string {
  if (rows.length === 0) return 'none'
  return table(
    ['ALERT', 'FIRED', 'SINK', 'STATE', 'TRIES', 'WHY', 'HEADLINE'],
    rows.map((row) => [
      `${row.source}.${row.id}`,
      row.firedAt,
      row.target ? `${row.sink} (${row.target})` : row.sink,
      row.state,
      String(row.attempts),
      row.reason ?? '-',
      row.headline,
    ]),
  )
}

export function describeAlert(story: AlertStory): string {
  return [
    `${story.source}.${story.id}  ${story.kind}${story.symbol ? `  ${isolated(story.symbol)}` : ''}`,
    isolated(story.headline),
    `fired ${story.firedAt}, seen ${story.seenAt ?? 'at an unknown time'}${(story.page ?? 1) > 1 ? ` on page ${story.page}` : ''}`,
    ...(story.deliveries.length === 0 && story.held.length === 0 ? ['no route named a sink for it'] : []),
    ...story.deliveries.flatMap(describeStory),
    ...(story.held.length === 0 ? [] : ['']),
    ...story.held.map(({ sinks, text }) =>
      sentence(sinks.length === 0 ? text : `${sinks.join(', ')}: ${text}`),
    ),
    // An earlier version does not say.
    ...(story.dropped ?? []).flatMap(({ sink, target, at }) => [
      ...['', `${sink}${target ? ` (${target})` : ''}: dropped by an operator at ${at}`],
    ]),
    ...(story.actions.length === 0 ? [] : ['', 'what operators did:']),
    ...story.actions.map(({ at, action, subject, count, comment, by, from }) => {
      const nothing = count === 0 ? ', which changed nothing' : ''
      return `  ${at} ${action} ${subject}${nothing}${comment ? ` “${isolated(comment)}”` : ''} (${by}, from ${from})`
    }),
  ]
    .map(printableLine)
    .join('\n')
}

function describeStory(story: DeliveryStory): string[] {
  const { sink, target, routes, state, orphaned, heldUpBy, reason, nextAttemptAt, attempts } = story
  const by = routes ? `, by ${routes.length === 1 ? 'route' : 'routes'} ${routes.join(', ')}` : ''
  const next = nextAttemptAt ? `, next attempt ${nextAttemptAt}` : ''
  const orphan = orphaned
    ? `; the sink is not in the config: orphans move ${sink} --to SINK, or orphans drop ${sink}`
    : ''
  return [
    '',
    `${sink}${target ? ` (${target})` : ''}: ${state}${reason ? `, ${isolated(reason)}` : ''}${next}${by}${orphan}${heldUpBy ? holdText(heldUpBy) : ''}`,
    ...attempts.flatMap((each, at) => {
      const status = each.status === null ? '' : ` ${each.status}`
      const line = `  ${each.number}. ${each.at} ${each.outcome}${each.reason ? ` (${isolated(each.reason)})` : ''}${status} ${isolated(each.text)}`
      const before = attempts[at - 1]
      const again = before && before.round !== each.round ? ['  sent again by an operator:'] : []
      const without = withoutText(each.skipped)
      return [...again, line, ...(without === '' ? [] : [`     ${without}`])]
    }),
  ]
}

function holdText({ state, reason, failingSince, nextProbeAt, heldUntil, pausedUntil }: SinkHold): string {
  const words = {
    active: `asked for a pause until ${heldUntil}`,
    paused: 'is paused',
    open: 'is resting',
    stuck: 'is stuck',
  }
  const span = [
    // A sink that is paused may have failed before.
    failingSince === null || state === 'paused' ? '' : ` since ${failingSince}`,
    nextProbeAt === null ? '' : `, next probe ${nextProbeAt}`,
    pausedUntil === null ? '' : ` until ${pausedUntil}`,
  ]
  return `; the sink ${words[state]}${span.join('')}${reason ? ` (${isolated(reason)})` : ''}`
}
