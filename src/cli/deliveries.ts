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
import { countOption, UsageError } from './usage.ts'

interface Options extends DaemonOptions {
  readonly state?: string
  readonly sink?: string
  readonly limit?: number
}

/** `deliveries [ID]`: the newest deliveries, or the whole history of one alert. */
export function deliveriesCommand(): Command {
  return daemonCommand(namedCommand('deliveries'))
    .argument('[id]', 'SOURCE.ID, such as main.4711')
    .addOption(new Option('--state <state>', 'only those in this state').choices(rowStates))
    .option('--sink <sink>', 'only those of this sink')
    .option('--limit <count>', 'how many (default 50, at most 500)', countOption('--limit', 500))
    .action(async (id: string | undefined, { state, sink, limit, ...options }: Options) => {
      const daemon = connectDaemon(options)
      const path = id === undefined ? '/api/v1/deliveries' : `/api/v1/deliveries/${pathOf(id)}`
      const answer = await daemon.get(path, id === undefined ? { state, sink, limit: limit?.toString() } : {})
      const { data } = answer as { data: unknown }
      if (options.json) printJson(data)
      else print(id === undefined ? describeRows(data as DeliveryRow[]) : describeAlert(data as AlertHistory))
    })
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
    ...attempts.map((each) => {
      const status = each.status === null ? '' : ` ${each.status}`
      return `  ${each.number}. ${each.at} ${each.outcome}${each.reason ? ` (${each.reason})` : ''}${status} ${each.text}`
    }),
  ]
}

function pathOf(id: string): string {
  const match = /^([a-z0-9-]+)\.(\d+)$/.exec(id)
  if (!match) throw new UsageError(`"${id}" is no alert: expected SOURCE.ID, such as main.4711.`)
  return `${match[1]}/${match[2]}`
}
