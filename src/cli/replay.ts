import type { Command } from 'commander'
import type { ReplayResult } from '../admin/ports.ts'
import { UserError } from '../lib/errors.ts'
import { connectDaemon, type DaemonOptions, daemonCommand, print, printJson } from './daemon.ts'
import { instantOf } from './instant.ts'

interface Options extends DaemonOptions {
  readonly sink?: string
  readonly since?: string
  readonly until?: string
}

/** `replay`: sends alerts again on purpose. */
export function replayCommand(): Command {
  return daemonCommand('replay', 'send alerts again on purpose: by id, or all that fired in a span')
    .argument('[ids...]', 'SOURCE.ID, such as main.4711')
    .option('--since <time>', 'alerts that fired at or after this time (ISO, or how long ago: 2h)')
    .option('--until <time>', 'and before this one (default: now)')
    .option('--sink <sink>', 'to this sink only')
    .action(async (ids: string[], { sink, since, until, ...options }: Options) => {
      if ((ids.length === 0) === (since === undefined))
        throw new UserError('Say which: either ids, or --since.')
      const nowMs = Date.now()
      const span = since === undefined ? { ids } : { since: instantOf(since, '--since', nowMs) }
      const end = until === undefined ? {} : { until: instantOf(until, '--until', nowMs) }
      const order = { ...span, ...end, ...(sink === undefined ? {} : { sink }) }
      const result = (await connectDaemon(options).post('/api/v1/replay', order)) as ReplayResult
      if (options.json) return printJson(result)
      const unknown =
        result.unknown.length === 0 ? '' : `; not known (any more): ${result.unknown.join(', ')}`
      return print(`${result.queued} queued${unknown}`)
    })
}
