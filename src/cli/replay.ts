import type { Command } from 'commander'
import type { DeliveryRow } from '../admin/delivery-view.ts'
import { given } from '../lib/given.ts'
import { printable } from '../telemetry/printable.ts'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { instantOption } from './instant.ts'
import type { ListPage } from './list.ts'
import { carryOut, countOrder, describeDone, describeDryRun, sampleMax } from './long-request.ts'
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
        const count = await countOrder(daemon, { path, body })
        const sample = since === undefined ? ids : await sampleOf(daemon, given({ since, until, sink }))
        if (options.json) return printJson({ dryRun: true, count, sample: sample.slice(0, sampleMax) })
        return print(describeDryRun(count, 'looked at and sent again where they have ended', sample))
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

/** Some of those that have ended, the last to fire first. */
async function sampleOf(daemon: Daemon, query: Readonly<Record<string, string>>): Promise<string[]> {
  const ended = (['delivered', 'dead'] as const).map(async (state) => {
    const page = await daemon.get('/api/v1/deliveries', { ...query, state, limit: sampleRows })
    return (page as ListPage<DeliveryRow>).data
  })
  const rows = (await Promise.all(ended)).flat()
  const inOrder = rows.toSorted((a, b) => Date.parse(b.firedAt) - Date.parse(a.firedAt))
  return [...new Set(inOrder.map(({ source, id }) => `${source}.${id}`))]
}

/** An alert may have a row for each of its sinks. */
const sampleRows = '100'
