import type { Command } from 'commander'
import { given } from '../lib/given.ts'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { instantOption } from './instant.ts'
import { carryOut, countOrder, describeDone, describeDryRun } from './long-request.ts'
import { print, printJson } from './output.ts'
import { alertIds, isoOption, UsageError } from './usage.ts'

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
    .option('--dry-run', 'only say how many it would be')
    .action(async (ids: string[], { sink, since, until, at, dryRun, ...options }: Options) => {
      if ((ids.length === 0) === (since === undefined))
        throw new UsageError('Say which: either ids, or --since.')
      if (until !== undefined && since === undefined) throw new UsageError('--until needs --since.')
      const span = since === undefined ? { ids } : { since }
      const end = until === undefined ? {} : { until }
      const body = {
        ...span,
        ...end,
        ...given({ sink, at }),
      }
      const [daemon, path] = [connectDaemon(options), '/api/v1/replay']
      if (dryRun) {
        const count = await countOrder(daemon, { path, body })
        const text = describeDryRun(count, 'looked at and sent again where they have ended', ids)
        return options.json ? printJson({ dryRun: true, count }) : print(text)
      }
      const done = await carryOut(daemon, { path, body, count: 'queued' })
      const { handled: queued, stayed: _, ...rest } = done
      if (options.json) return printJson({ queued, ...rest })
      return print(describeDone(done, 'queued'))
    })
}
