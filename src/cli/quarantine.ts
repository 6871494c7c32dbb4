import type { Command } from 'commander'
import type { QuarantinedRow } from '../admin/views/status-view.ts'
import { sampleMax } from '../delivery/records/sample.ts'
import { given } from '../lib/given.ts'
import { printable } from '../telemetry/printable.ts'
import { countOption, idsArgument, refuseLimit, UsageError } from './arguments/usage.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { countDefault, listPages } from './client/list.ts'
import { describeDryRun } from './client/long-request.ts'
import { namedCommand } from './command-texts.ts'
import { print, printJson } from './output/output.ts'
import { table } from './output/table.ts'

interface Options extends DaemonOptions {
  readonly source?: string
  readonly limit: number
  readonly all?: boolean
  readonly dryRun?: boolean
}

/** `quarantine list|retry|drop`: rows of the feed that could not be read. */
export function quarantineCommand(): Command {
  return daemonCommand(namedCommand('quarantine'))
    .argument('<action>', 'list, retry or drop')
    .argument('[ids...]', 'SOURCE.KEY, as list shows them', rowIds)
    .option('--source <source>', 'only those of this source')
    .option('--limit <count>', 'how many to list', countOption('--limit'), countDefault)
    .option('--all', 'with retry and drop: all of them')
    .option('--dry-run', 'with retry and drop: only say how many it would be, and name some')
    .action(async (action: string, ids: string[], order: Options, command: Command) => {
      const { source, limit, all, dryRun, ...options } = order
      const daemon = connectDaemon(options)
      const rows = async (count?: number) => {
        const { data, more } = await listPages<QuarantinedRow>(
          daemon,
          '/api/v1/quarantine',
          { source },
          ids.length > 0 ? undefined : count,
        )
        return { shown: ids.length === 0 ? data : data.filter((row) => ids.includes(idOf(row))), more }
      }
      if (action === 'list') {
        const { shown, more } = await rows(limit)
        return options.json ? printJson(shown) : print([describe(shown), ...more].join('\n'))
      }
      if (action !== 'retry' && action !== 'drop')
        throw new UsageError(`"${action}" is no action: expected list, retry or drop.`)
      refuseLimit(command, action)
      const selection = given({ source, all, ids: ids.length === 0 ? undefined : ids })
      if (Object.keys(selection).length === 0) throw new UsageError('Say which: ids, --source, or --all.')
      if (dryRun) {
        const names = (await rows()).shown.map(idOf)
        const [count, sample] = [names.length, names.slice(0, sampleMax)]
        if (options.json) return printJson({ dryRun: true, count, sample })
        return print(
          describeDryRun({ handled: count, sample }, action === 'retry' ? 'read again' : 'dropped'),
        )
      }
      const answer = (await daemon.post(`/api/v1/quarantine/${action}`, selection)) as Record<string, number>
      const { retried = 0, unreadable = 0, dropped = 0 } = answer
      // As of alerts that are named and not known.
      const gone = new Set(ids).size - retried - unreadable - dropped
      if (gone > 0) process.exitCode = 1
      if (options.json) return printJson(answer)
      const done =
        action === 'retry' ? `${retried} sent, ${unreadable} still cannot be read` : `${dropped} dropped`
      return print(printable(gone > 0 ? `${done}; not known (any more): ${gone} of those named` : done))
    })
}

const rawCharsMax = 120
const rowIds = idsArgument(/^.{1,200}\.(\d{1,16}|raw-[0-9a-f]{1,64})$/, 'SOURCE.KEY, as list shows them')

function describe(rows: readonly QuarantinedRow[]): string {
  if (rows.length === 0) return 'none'
  return table(
    ['ROW', 'SEEN', 'WHY', 'AS IT CAME'],
    rows.map((row) => [idOf(row), row.seenAt, row.reason, row.raw.slice(0, rawCharsMax)]),
  )
}

function idOf({ source, key }: QuarantinedRow): string {
  return `${source}.${key}`
}
