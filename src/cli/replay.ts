import type { Command } from 'commander'
import type { DeliveryRow } from '../admin/delivery-view.ts'
import { given } from '../lib/given.ts'
import { printable } from '../telemetry/printable.ts'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { instantOption } from './instant.ts'
import { listPages } from './list.ts'
import { carryOut, countOrder, describeDone, describeDryRun, sampleMax } from './long-request.ts'
import { print, printJson } from './output.ts'
import { progressBar } from './progress.ts'
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
    .option('--dry-run', 'only say how many it would be, and name some')
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
        // Refuses what the order itself would refuse; its total counts all that is looked at.
        const total = await countOrder(daemon, { path, body })
        const meant =
          since === undefined
            ? await meantById(daemon, ids, sink)
            : meantIn(await endedIn(daemon, given({ since, until, sink }), total))
        const { count, sample, unknown } = meant
        if (options.json)
          return printJson({ dryRun: true, count, sample: sample.slice(0, sampleMax), unknown })
        return print(describeDryRun(count, 'sent again', sample, unknown))
      }
      const done = await carryOut(daemon, { path, body, count: 'queued' })
      const { handled: queued, stayed: _, ...rest } = done
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

interface Meant {
  readonly count: number
  readonly sample: readonly string[]
  readonly unknown: readonly string[]
}

/** The deliveries that have ended, the last to fire first: what still waits is left to its schedule. */
async function endedIn(
  daemon: Daemon,
  query: Readonly<Record<string, string>>,
  total: number,
): Promise<DeliveryRow[]> {
  const bar = progressBar('looking')
  const show = (count: number) => bar.show(count, total)
  try {
    // Of all states at once: a search for one of them looks at every alert, too.
    const { data } = await listPages<DeliveryRow>(daemon, '/api/v1/deliveries', query, undefined, show)
    return data.filter(hasEnded)
  } finally {
    bar.end()
  }
}

function hasEnded({ state }: DeliveryRow): boolean {
  return state === 'delivered' || state === 'dead'
}

/** Of alerts that are named, a sink that is named also gets what was held back, where it has no delivery of it. */
async function meantById(daemon: Daemon, ids: readonly string[], sink: string | undefined): Promise<Meant> {
  const meant: DeliveryRow[] = []
  const unknown: string[] = []
  for (const id of new Set(ids)) {
    const { data } = await listPages<DeliveryRow>(daemon, '/api/v1/deliveries', { id })
    if (data.length === 0) unknown.push(id)
    const sent = data.filter((row) => row.state !== 'held' && (sink === undefined || row.sink === sink))
    const held = sink === undefined || sent.length > 0 ? [] : data.filter(({ state }) => state === 'held')
    meant.push(...sent.filter(hasEnded), ...held.slice(0, 1))
  }
  return { ...meantIn(meant), unknown }
}

function meantIn(rows: readonly DeliveryRow[]): Meant {
  const sample = [...new Set(rows.map(({ source, id }) => `${source}.${id}`))]
  return { count: rows.length, sample, unknown: [] }
}
