import type { Command } from 'commander'
import type { DeadLetter } from '../admin/delivery-view.ts'
import { formatCount } from '../admin/page/times.ts'
import { given } from '../lib/given.ts'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { describeRows } from './deliveries.ts'
import { instantOption } from './instant.ts'
import { carryOut, describeDone } from './long-request.ts'
import { print, printJson } from './output.ts'
import { alertIds, countOption, isoOption, UsageError } from './usage.ts'

interface Options extends DaemonOptions {
  readonly sink?: string
  readonly reason?: string
  readonly since?: string
  readonly limit: number
  readonly all?: boolean
  readonly at?: string
}

/** `dead-letters list|retry|drop`: what could not be delivered. */
export function deadLettersCommand(): Command {
  return daemonCommand(namedCommand('dead-letters'))
    .argument('<action>', 'list, retry or drop')
    .argument('[ids...]', 'SOURCE.ID, such as main.4711', alertIds)
    .option('--sink <sink>', 'only those of this sink')
    .option('--reason <word>', 'only those given up on for this reason, such as rejected')
    .option(
      '--since <time>',
      'only those given up at or after this time (ISO, or how long ago: 2h)',
      instantOption('--since'),
    )
    .option('--limit <count>', 'how many to list', countOption('--limit'), countDefault)
    .option('--all', 'all of them')
    .option(
      '--at <time>',
      'go on with the retry that began then and broke off: nothing is sent twice',
      isoOption('--at'),
    )
    .action(
      async (action: string, ids: string[], { sink, reason, since, limit, all, at, ...options }: Options) => {
        const daemon = connectDaemon(options)
        const listable = given({ sink, since })
        const selected = given({ sink, reason, since })
        if (action === 'list') {
          const isMeant = (letter: DeadLetter) =>
            (ids.length === 0 || ids.includes(`${letter.source}.${letter.id}`)) &&
            (reason === undefined || letter.reason.startsWith(`${reason}: `) || letter.reason === reason)
          const wanted = all || ids.length > 0 ? Number.POSITIVE_INFINITY : limit
          const { letters, more } = await listed(daemon, listable, wanted, isMeant)
          if (options.json) return printJson(letters)
          return print([describeRows(letters), ...more].join('\n'))
        }
        if (action !== 'retry' && action !== 'drop')
          throw new UsageError(`"${action}" is no action: expected list, retry or drop.`)
        const selection = { ...selected, ...(ids.length === 0 ? {} : { ids }), ...(all ? { all } : {}) }
        if (Object.keys(selection).length === 0)
          throw new UsageError('Say which: ids, --sink, --reason, --since, or --all.')
        const [count, word] =
          action === 'retry' ? (['retried', 'put back'] as const) : (['dropped', 'dropped'] as const)
        const body = { ...selection, ...(at === undefined ? {} : { at }) }
        const done = await carryOut(daemon, { path: `/api/v1/dead-letters/${action}`, body, count })
        const { handled, gone, unknown, at: began } = done
        return options.json
          ? printJson({ [count]: handled, gone, unknown, at: began })
          : print(describeDone(done, word))
      },
    )
}

/** Reads the newest, page by page, and returns a line when there are more. */
async function listed(
  daemon: Daemon,
  query: Readonly<Record<string, string>>,
  wanted: number,
  isMeant: (letter: DeadLetter) => boolean,
): Promise<{ letters: DeadLetter[]; more: string[] }> {
  const letters: DeadLetter[] = []
  for (let cursor: string | undefined; ; ) {
    const limit = String(Math.min(pageMax, wanted - letters.length))
    const page = (await daemon.get('/api/v1/dead-letters', { ...query, limit, cursor })) as DeadLetterPage
    letters.push(...page.data.filter(isMeant))
    if (page.cursor === null) return { letters, more: [] }
    if (letters.length >= wanted) {
      const more = `${formatCount(letters.length)} of ${formatCount(page.total)}; --all lists them all`
      return { letters, more: [more] }
    }
    cursor = page.cursor
  }
}

interface DeadLetterPage {
  readonly data: readonly DeadLetter[]
  readonly total: number
  readonly cursor: string | null
}

const pageMax = 500
const countDefault = 50
