import type { Command } from 'commander'
import { formatCount } from '../admin/page/words/en.ts'
import type { DeadLetterRow } from '../admin/views/delivery-view.ts'
import { given } from '../lib/given.ts'
import { instantOption } from './arguments/instant.ts'
import { alertIds, countOption, isoOption, refuseLimit, UsageError } from './arguments/usage.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { checkedPage, countDefault, type ListPage, pageMax } from './client/list.ts'
import { carryOut, describeDone, describeDryRun } from './client/long-request.ts'
import { namedCommand } from './command-texts.ts'
import { describeRows } from './deliveries.ts'
import { print, printJson } from './output/output.ts'

interface Options extends DaemonOptions {
  readonly sink?: string
  readonly reason?: string
  readonly since?: string
  readonly limit: number
  readonly all?: boolean
  readonly dryRun?: boolean
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
    .option('--dry-run', 'with retry and drop: only say how many it would be, and name some')
    .option(
      '--at <time>',
      'go on with the retry that began then and broke off: nothing is sent twice',
      isoOption('--at'),
    )
    .action(async (action: string, ids: string[], options: Options, command: Command) => {
      const daemon = connectDaemon(options)
      if (action === 'list') return list(daemon, ids, options)
      if (action !== 'retry' && action !== 'drop')
        throw new UsageError(`"${action}" is no action: expected list, retry or drop.`)
      refuseLimit(command, action)
      return change(daemon, action, ids, options)
    })
}

async function list(daemon: Daemon, ids: readonly string[], options: Options): Promise<void> {
  const wanted = options.all || ids.length > 0 ? Number.POSITIVE_INFINITY : options.limit
  const { letters, more } = await listed(daemon, options, ids, wanted)
  if (options.json) printJson(letters)
  else print([describeRows(letters), ...more].join('\n'))
}

async function change(
  daemon: Daemon,
  action: 'retry' | 'drop',
  ids: readonly string[],
  { sink, reason, since, all, at, dryRun, ...options }: Options,
): Promise<void> {
  const selection = given({ sink, reason, since, all, ids: ids.length === 0 ? undefined : ids })
  if (Object.keys(selection).length === 0)
    throw new UsageError('Say which: ids, --sink, --reason, --since, or --all.')
  const [count, word] =
    action === 'retry' ? (['retried', 'put back'] as const) : (['dropped', 'dropped'] as const)
  const body = { ...selection, ...given({ at, dryRun }) }
  const done = await carryOut(daemon, { path: `/api/v1/dead-letters/${action}`, body, count })
  if (dryRun) {
    const { handled, sample, unknown } = done
    if (options.json) return printJson({ dryRun: true, count: handled, sample, unknown })
    return print(describeDryRun(done, word))
  }
  const { handled, gone, unknown, uncounted, at: began } = done
  if (options.json) printJson({ [count]: handled, gone, unknown, uncounted, at: began })
  else print(describeDone(done, word))
}

/** Reads the newest, page by page, and returns a line when there are more. */
async function listed(
  daemon: Daemon,
  { sink, since, reason }: Options,
  ids: readonly string[],
  wanted: number,
): Promise<{ letters: DeadLetterRow[]; more: string[] }> {
  const isMeant = (letter: DeadLetterRow) =>
    (ids.length === 0 || ids.includes(`${letter.source}.${letter.id}`)) &&
    (reason === undefined || letter.reason.startsWith(`${reason}: `) || letter.reason === reason)
  const letters: DeadLetterRow[] = []
  let meant = 0
  for (let cursor: string | undefined; ; ) {
    const limit = String(reason === undefined ? Math.min(pageMax, wanted - letters.length) : pageMax)
    const answer = await daemon.get('/api/v1/dead-letters', { sink, since, limit, cursor })
    const page = checkedPage<ListPage<DeadLetterRow>>(answer, cursor)
    const found = page.data.filter(isMeant)
    meant += found.length
    letters.push(...found.slice(0, wanted - letters.length))
    const isCut = letters.length >= wanted && (meant > letters.length || page.cursor)
    // The bridge counts without the reason, so where one is asked for, all are read to be counted here.
    if (page.cursor && (!isCut || reason !== undefined)) {
      cursor = page.cursor
      continue
    }
    const total = reason === undefined ? (page.total ?? null) : meant
    const isAll = !isCut || total === letters.length
    const more = `${formatCount(letters.length)} of ${formatCount(total)}; --all lists them all`
    return { letters, more: isAll ? [] : [more] }
  }
}
