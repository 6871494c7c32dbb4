import { type Command, Option } from 'commander'
import {
  type AlertHistory,
  type DeliveryHistory,
  type DeliveryRow,
  rowStates,
} from '../admin/delivery-view.ts'
import { printable } from '../telemetry/printable.ts'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { print, printJson } from './output.ts'
import { table } from './table.ts'
import { alertOf, countOption, UsageError } from './usage.ts'
import { untilStopped, watch } from './watch.ts'

interface Options extends DaemonOptions {
  readonly state?: string
  readonly sink?: string
  readonly limit?: number
  readonly follow?: boolean
}

/** `deliveries [ID]`: the newest deliveries, or the whole history of one alert. */
export function deliveriesCommand(): Command {
  return daemonCommand(namedCommand('deliveries'))
    .argument('[id]', 'SOURCE.ID, such as main.4711')
    .addOption(new Option('--state <state>', 'only those in this state').choices(rowStates))
    .option('--sink <sink>', 'only those of this sink')
    .option('--limit <count>', 'how many (default 50, at most 500)', countOption('--limit', 500))
    .option('--follow', 'the newest, and then every delivery whose state changes, until Ctrl-C')
    .action(async (id: string | undefined, { state, sink, limit, follow, ...options }: Options) => {
      const daemon = connectDaemon(options)
      const query = { state, sink, limit: limit?.toString() }
      const rows = async () =>
        ((await daemon.get('/api/v1/deliveries', query)) as { data: DeliveryRow[] }).data
      if (id !== undefined) {
        if (follow) throw new UsageError('--follow shows all deliveries: give it no id.')
        const { source, id: number } = alertOf(id)
        const answer = await daemon.get(`/api/v1/deliveries/${source}/${number}`)
        const { data } = answer as { data: AlertHistory }
        return options.json ? printJson(data) : print(describeAlert(data))
      }
      if (follow) {
        const news = changedRows()
        const show = (row: DeliveryRow) => print(options.json ? JSON.stringify(row) : describeRow(row))
        return watch(async () => news(await rows()).forEach(show), followEveryMs, untilStopped())
      }
      return options.json ? printJson(await rows()) : print(describeRows(await rows()))
    })
}

const followEveryMs = 1_000

/** Gives what is new, or in another state than when it was last given, the oldest first. */
export function changedRows(): (rows: readonly DeliveryRow[]) => readonly DeliveryRow[] {
  const known = new Map<string, string>()
  return (rows) => {
    const news = rows.toReversed().filter((row) => {
      const name = nameOf(row)
      const stands = `${row.state} ${row.attempts} ${row.reason}`
      if (known.get(name) === stands) return false
      known.delete(name)
      known.set(name, stands)
      return true
    })
    for (const name of known.keys()) {
      if (known.size <= knownMax) break
      known.delete(name)
    }
    return news
  }
}

/** Many times the rows of an answer. */
const knownMax = 10_000

function nameOf({ source, id, sink, target }: DeliveryRow): string {
  return `${source}.${id} → ${target ? `${sink} (${target})` : sink}`
}

function describeRow(row: DeliveryRow): string {
  const { updatedAt, state, attempts, reason, headline } = row
  const tries = attempts > 1 ? ` ×${attempts}` : ''
  return printable(
    `${updatedAt ?? '-'}  ${nameOf(row)}  ${state}${tries}${reason ? ` (${reason})` : ''}  ${headline}`,
  )
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

export function describeAlert(history: AlertHistory): string {
  return [
    `${history.source}.${history.id}  ${history.kind}${history.symbol ? `  ${history.symbol}` : ''}`,
    history.headline,
    `fired ${history.firedAt}, seen ${history.seenAt ?? 'at an unknown time'}`,
    ...(history.deliveries.length === 0 && history.held.length === 0 ? ['no route named a sink for it'] : []),
    ...history.deliveries.flatMap(describeHistory),
    ...(history.held.length === 0 ? [] : ['']),
    ...history.held.map(({ sinks, text }) => (sinks.length === 0 ? text : `${sinks.join(', ')}: ${text}`)),
    ...(history.actions.length === 0 ? [] : ['', 'what operators did:']),
    ...history.actions.map(({ at, action, subject, comment, by, from }) => {
      return `  ${at} ${action} ${subject}${comment ? ` “${comment}”` : ''} (${by}, from ${from})`
    }),
  ]
    .map(printable)
    .join('\n')
}

function describeHistory(history: DeliveryHistory): string[] {
  const { sink, target, state, reason, nextAttemptAt, attempts } = history
  const next = nextAttemptAt ? `, next attempt ${nextAttemptAt}` : ''
  return [
    '',
    `${sink}${target ? ` (${target})` : ''}: ${state}${reason ? `, ${reason}` : ''}${next}`,
    ...attempts.flatMap((each, at) => {
      const status = each.status === null ? '' : ` ${each.status}`
      const line = `  ${each.number}. ${each.at} ${each.outcome}${each.reason ? ` (${each.reason})` : ''}${status} ${each.text}`
      const before = attempts[at - 1]
      return before && before.round !== each.round ? ['  sent again by an operator:', line] : [line]
    }),
  ]
}
