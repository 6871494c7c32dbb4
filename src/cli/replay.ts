import type { Command } from 'commander'
import { given } from '../lib/given.ts'
import { printable } from '../telemetry/printable.ts'
import { instantOption } from './arguments/instant.ts'
import { alertIds, isoOption, UsageError } from './arguments/usage.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { carryOut, describeDone, describeDryRun } from './client/long-request.ts'
import { namedCommand } from './command-texts.ts'
import { print, printJson } from './output/output.ts'

interface Options extends DaemonOptions {
  readonly sink?: string
  readonly since?: string
  readonly until?: string
  readonly at?: string
  readonly dryRun?: boolean
}

/** `replay`: sends alerts again on purpose. */
export function replayCommand(): Command {
  return daemonCommand(namedCommand('replay'))
    .argument('[ids...]', 'SOURCE.ID, such as main.4711', alertIds)
    .option(
      '--since <time>',
      'alerts that fired at or after this time (ISO, or how long ago: 2h)',
      instantOption('--since'),
    )
    .option('--until <time>', 'and at or before this one (default: now)', instantOption('--until'))
    .option('--sink <sink>', 'to this sink only')
    .option(
      '--at <time>',
      'go on with the replay that began then and broke off: nothing is sent twice',
      isoOption('--at'),
    )
    .option('--dry-run', 'only say how many it would be, and name some')
    .action(async (ids: string[], { sink, since, until, at, dryRun, ...options }: Options) => {
      if ((ids.length === 0) === (since === undefined))
        throw new UsageError('Say which: either ids, or --since.')
      if (until !== undefined && since === undefined) throw new UsageError('--until needs --since.')
      const daemon = connectDaemon(options)
      const body = given({ ids: since === undefined ? ids : undefined, since, until, sink, at, dryRun })
      const done = await carryOut(daemon, { path: '/api/v1/replay', body, count: 'queued' })
      if (dryRun) {
        const { handled: count, sample, unknown } = done
        if (options.json) return printJson({ dryRun: true, count, sample, unknown })
        return print(describeDryRun(done, 'sent again'))
      }
      const { handled: queued, stayed: _, sample: __, ...rest } = done
      if (options.json) return printJson({ queued, ...rest })
      const why = queued === 0 && ids.length > done.unknown.length ? noneEnded(sink) : ''
      return print(`${describeDone(done, 'queued')}${why}`)
    })
}

/** A known alert that was not queued still waits, was queued by this command before, or never went to that sink. */
function noneEnded(sink: string | undefined): string {
  const where = sink === undefined ? '' : ` at ${printable(sink)}`
  return `; none has ended${where}: \`deliveries ID\` shows where each is`
}
