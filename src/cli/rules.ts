import type { Command } from 'commander'
import type { StatusView } from '../admin/views/status-view.ts'
import { wholeText } from '../alert/text/value.ts'
import { formatDuration } from '../lib/duration.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { listPages } from './client/list.ts'
import { namedCommand } from './command-texts.ts'
import { print, printJson } from './output/output.ts'
import { table } from './output/table.ts'

/** `rules`: the account's alert rules as a running bridge last read them, which costs nothing. */
export function rulesCommand(): Command {
  return daemonCommand(namedCommand('rules'))
    .option('--source <source>', 'only those of this source')
    .action(async ({ source, ...options }: DaemonOptions & { readonly source?: string }) => {
      const daemon = connectDaemon(options)
      const { data: shown } = await listPages<Row>(daemon, '/api/v1/rules', { source })
      if (options.json) return printJson(shown)
      const { sources } = (await daemon.get('/api/v1/status')) as StatusView
      const those = sources.filter(({ name }) => source === undefined || name === source)
      const areRead = those.every(({ rules }) => rules !== null)
      print([describeRules(shown, Date.now(), { areRead }), ...unreadLines(those)].join('\n'))
    })
}

/** Who looks for a rule that is not listed is to know that there may be one. */
function unreadLines(sources: StatusView['sources']): string[] {
  return sources.flatMap(({ name, rules }) => {
    if (!rules || !(rules.unread > 0)) return []
    const those = `the newest ${rules.count} of ${rules.count + rules.unread} rules`
    return `${name}: these are ${those}, as many as poll.rulesShare and an hour buy; of the others nobody is notified`
  })
}

type Row = Readonly<Record<string, unknown>>

export function describeRules(rows: readonly Row[], nowMs: number, { areRead = false } = {}): string {
  if (rows.length === 0 && areRead) return 'there are no alert rules, so no alert can fire'
  if (rows.length === 0)
    return 'no rules are known: they were not read yet, or poll.rulesShare buys none (alert-bridge api GET /api/v1/alerts reads them)'
  return table(
    ['SOURCE', 'RULE', 'KIND', 'SYMBOL', 'NAME', 'STATE', 'LAST FIRED', 'READ'],
    rows.map((row) => [
      ...['source', 'id', 'kind', 'symbol', 'name'].map((field) => wholeText(row[field]) ?? '-'),
      stateOf(row),
      row['lastFiredAt'] === null ? 'never' : ago(row['lastFiredAt'], nowMs),
      ago(row['readAt'], nowMs),
    ]),
  )
}

function stateOf({ silent, isActive, isArmed }: Row): string {
  if (typeof silent === 'string') return `MAY NOT FIRE: ${silent}`
  if (isActive === false) return 'switched off'
  return isArmed === false ? 'fired, not armed again yet' : 'armed'
}

function ago(at: unknown, nowMs: number): string {
  const ms = typeof at === 'string' ? Date.parse(at) : Number.NaN
  return Number.isNaN(ms) ? '-' : `${formatDuration(Math.max(0, nowMs - ms))} ago`
}
