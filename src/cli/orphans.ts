import { type Command, Option } from 'commander'
import type { DeliveryRow } from '../admin/views/delivery-view.ts'
import { type OrphanView, orphanKinds } from '../admin/views/orphan-view.ts'
import { given } from '../lib/given.ts'
import { countOption, refuseLimit, UsageError } from './arguments/usage.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { countDefault, listPages } from './client/list.ts'
import { carryOut, describeDone, describeDryRun } from './client/long-request.ts'
import { namedCommand } from './command-texts.ts'
import { describeRows } from './deliveries.ts'
import { print, printJson } from './output/output.ts'
import { table } from './output/table.ts'

interface Options extends DaemonOptions {
  readonly to?: string
  readonly retry?: boolean
  readonly kind?: string
  readonly limit: number
  readonly dryRun?: boolean
}

/** `orphans list|move|drop`: what is left of sinks and sources that are not in the config (any more). */
export function orphansCommand(): Command {
  return daemonCommand(namedCommand('orphans'))
    .argument('<action>', 'list, move or drop')
    .argument('[name]', 'of the sink or source; list without it shows all of them')
    .option('--to <name>', 'with move: the sink that gets the alerts, or the source that takes over the data')
    .option('--retry', 'with move: dead letters are sent again, and not only moved')
    .option('--dry-run', 'with move and drop: only say how many it would be, and name some')
    .addOption(new Option('--kind <kind>', 'where both have this name').choices(orphanKinds))
    .option('--limit <count>', 'how many alerts of a sink to list', countOption('--limit'), countDefault)
    .action(
      async (
        action: string,
        name: string | undefined,
        { to, retry, kind, limit, dryRun, ...options }: Options,
        command: Command,
      ) => {
        const daemon = connectDaemon(options)
        if (action === 'list') return list(daemon, name, { limit, json: options.json ?? false })
        if (action !== 'move' && action !== 'drop')
          throw new UsageError(`"${action}" is no action: expected list, move or drop.`)
        refuseLimit(command, action)
        if (name === undefined) throw new UsageError(`Say which: ${action} NAME, as list shows it.`)
        if (action === 'move' && to === undefined) throw new UsageError('Say where: --to NAME.')
        const body = given({ kind, dryRun, ...(action === 'move' ? { to, retry } : {}) })
        const path = `/api/v1/orphans/${encodeURIComponent(name)}/${action}`
        const count = action === 'move' ? 'moved' : 'dropped'
        const done = await carryOut(daemon, { path, body, count, takesAt: false })
        if (dryRun) {
          const { handled, sample, stayed } = done
          return options.json
            ? printJson({ dryRun: true, count: handled, sample, ...stayed })
            : print(describeDryRun(done, count) + describeStayed(stayed))
        }
        const { handled, stayed, gone, uncounted, at } = done
        if (options.json) printJson({ [count]: handled, ...stayed, gone, uncounted, at })
        else print(describeDone(done, count) + describeStayed(stayed))
      },
    )
}

async function list(
  daemon: Daemon,
  name: string | undefined,
  { limit, json }: { limit: number; json: boolean },
): Promise<void> {
  if (name === undefined) {
    const { data } = await listPages<OrphanView>(daemon, '/api/v1/orphans', {})
    return json ? printJson(data) : print(describe(data))
  }
  const path = `/api/v1/orphans/${encodeURIComponent(name)}`
  const { data, more } = await listPages<DeliveryRow>(daemon, path, {}, limit)
  return json ? printJson(data) : print([describeRows(data), ...more].join('\n'))
}

function describe(orphans: readonly OrphanView[]): string {
  if (orphans.length === 0) return 'none'
  return table(
    ['KIND', 'NAME', 'LEFT'],
    orphans.map((orphan) => [orphan.kind, orphan.name, leftText(orphan)]),
  )
}

function leftText(orphan: OrphanView): string {
  if (orphan.kind === 'sink') {
    const { waiting, sending, delayed, dead } = orphan
    return `${waiting} waiting, ${sending} being sent, ${delayed} to be tried again, ${dead} dead`
  }
  const { rows, held, quarantined, lastPollAt } = orphan
  return `${rows} rows remembered, ${held} held back, ${quarantined} quarantined; last poll ${lastPollAt ?? 'not known'}`
}

/** How many were not moved or dropped, and why. */
function describeStayed({
  there,
  busy,
  unreadable,
}: {
  there: number
  busy: number
  unreadable: number
}): string {
  return [
    ...(there > 0 ? [`; ${there} had arrived already`] : []),
    ...(busy > 0 ? [`; ${busy} are being sent at this moment and stayed`] : []),
    ...(unreadable > 0 ? [`; ${unreadable} cannot be read and stayed`] : []),
  ].join('')
}
