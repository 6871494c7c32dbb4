import type { Command } from 'commander'
import { given } from '../lib/given.ts'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { instantOption } from './instant.ts'
import { carryOut, describeDone } from './long-request.ts'
import { print, printJson } from './output.ts'
import { alertIds, isoOption, UsageError } from './usage.ts'

interface Options extends DaemonOptions {
  readonly sink?: string
  readonly since?: string
  readonly until?: string
  readonly at?: string
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
    .action(async (ids: string[], { sink, since, until, at, ...options }: Options) => {
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
      const done = await carryOut(connectDaemon(options), {
        path: '/api/v1/replay',
        body,
        count: 'queued',
      })
      const { handled: queued, stayed: _, ...rest } = done
      if (options.json) return printJson({ queued, ...rest })
      return print(describeDone(done, 'queued'))
    })
}
