import type { Command } from 'commander'
import type { DeadLetter } from '../admin/delivery-view.ts'
import { UserError } from '../lib/errors.ts'
import { connectDaemon, type DaemonOptions, daemonCommand, print, printJson } from './daemon.ts'
import { describeRows } from './deliveries.ts'
import { instantOf } from './instant.ts'

interface Options extends DaemonOptions {
  readonly sink?: string
  readonly since?: string
  readonly limit?: string
  readonly all?: boolean
}

/** `dead-letters list|retry|drop`: what could not be delivered. */
export function deadLettersCommand(): Command {
  return daemonCommand('dead-letters', 'what could not be delivered: list, retry or drop')
    .argument('<action>', 'list, retry or drop')
    .argument('[ids...]', 'SOURCE.ID, such as main.4711')
    .option('--sink <sink>', 'only those of this sink')
    .option('--since <time>', 'only those given up at or after this time (ISO, or how long ago: 2h)')
    .option('--limit <count>', 'how many to list (default 50, at most 500)')
    .option('--all', 'with retry and drop: all of them')
    .action(async (action: string, ids: string[], { sink, since, limit, all, ...options }: Options) => {
      const daemon = connectDaemon(options)
      const sinceTime = since === undefined ? {} : { since: instantOf(since, '--since', Date.now()) }
      const selected = { ...(sink === undefined ? {} : { sink }), ...sinceTime }
      if (action === 'list') {
        const { data } = (await daemon.get('/api/v1/dead-letters', { ...selected, limit })) as {
          data: DeadLetter[]
        }
        const shown =
          ids.length === 0 ? data : data.filter((each) => ids.includes(`${each.source}.${each.id}`))
        return options.json ? printJson(shown) : print(describeRows(shown))
      }
      if (action !== 'retry' && action !== 'drop')
        throw new UserError(`"${action}" is no action: expected list, retry or drop.`)
      const selection = { ...selected, ...(ids.length === 0 ? {} : { ids }), ...(all ? { all } : {}) }
      if (Object.keys(selection).length === 0)
        throw new UserError('Say which: ids, --sink, --since, or --all.')
      const answer = (await daemon.post(`/api/v1/dead-letters/${action}`, selection)) as Record<
        string,
        number
      >
      if (options.json) return printJson(answer)
      return print(action === 'retry' ? `${answer['retried']} put back` : `${answer['dropped']} dropped`)
    })
}
