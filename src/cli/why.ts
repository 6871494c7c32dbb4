import type { Command } from 'commander'
import type { AlertStory, DeliveryRow } from '../admin/delivery-view.ts'
import type { QuarantinedRow, SourceView, StatusView } from '../admin/status-view.ts'
import { NotFoundError } from '../lib/errors.ts'
import { printable } from '../telemetry/printable.ts'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { describeAlert } from './deliveries.ts'
import { print, printJson } from './output.ts'
import { alertOf } from './usage.ts'

/** What is known around an alert that the bridge has no record of. */
interface Around {
  readonly source: string
  readonly id: number
  readonly status: StatusView
  /** The row with this id, where it could not be read. */
  readonly quarantined: QuarantinedRow | undefined
  /** Of the newest alerts of this source, those next to it by their ids. */
  readonly before: DeliveryRow | undefined
  readonly after: DeliveryRow | undefined
}

/** `why ID`: what became of an alert, also where nothing did: then what the bridge knows around it. */
export function whyCommand(): Command {
  return daemonCommand(namedCommand('why'))
    .argument('<id>', 'SOURCE.ID, such as main.4711')
    .action(async (text: string, options: DaemonOptions) => {
      const { source, id } = alertOf(text)
      const daemon = connectDaemon(options)
      const story = await storyOf(daemon, source, id)
      if (story !== undefined) return options.json ? printJson(story) : print(describeAlert(story))
      const around = await aroundOf(daemon, source, id)
      const { status: _, ...shown } = around
      return options.json ? printJson({ known: false, ...shown }) : print(describeAround(around))
    })
}

async function storyOf(daemon: Daemon, source: string, id: number): Promise<AlertStory | undefined> {
  try {
    return ((await daemon.get(`/api/v1/deliveries/${source}/${id}`)) as { data: AlertStory }).data
  } catch (thrown) {
    if (thrown instanceof NotFoundError) return undefined
    throw thrown
  }
}

async function aroundOf(daemon: Daemon, source: string, id: number): Promise<Around> {
  const list = async (query: Record<string, string>) =>
    ((await daemon.get('/api/v1/deliveries', { limit: '500', ...query })) as { data: DeliveryRow[] }).data
  const [status, rows, held, quarantine] = await Promise.all([
    daemon.get('/api/v1/status') as Promise<StatusView>,
    list({}),
    list({ state: 'held' }),
    daemon.get('/api/v1/quarantine', { limit: '500' }) as Promise<{ data: QuarantinedRow[] }>,
  ])
  const own = [...rows, ...held].filter((row) => row.source === source).sort((a, b) => a.id - b.id)
  return {
    ...{ source, id, status },
    quarantined: quarantine.data.find((row) => row.source === source && row.key === String(id)),
    before: own.findLast((row) => row.id < id),
    after: own.find((row) => row.id > id),
  }
}

function describeAround({ source, id, status, quarantined, before, after }: Around): string {
  const known = status.sources.find(({ name }) => name === source)
  const lines = [
    `${source}.${id}: the bridge has no record of it (any more)`,
    ...(quarantined
      ? [
          `its row came at ${quarantined.seenAt} and could not be read: ${quarantined.reason} (quarantine list)`,
        ]
      : []),
    ...(known
      ? sourceLines(known)
      : [`there is no source ${source}; there is ${status.sources.map(({ name }) => name).join(', ')}`]),
    ...(before ? [`the one before it that is known: ${rowText(before)}`] : []),
    ...(after ? [`the one after it that is known: ${rowText(after)}`] : []),
    ...(known && !quarantined ? [`so ${reasonsOf(known, after).join(', or ')}`] : []),
  ]
  return lines.map(printable).join('\n')
}

function sourceLines({
  name,
  state,
  lastPollAt,
  lastCompleteWalkAt,
  nextPollAt,
  behind,
}: SourceView): string[] {
  const polled = lastPollAt === null ? 'was not polled yet' : `was last polled at ${lastPollAt}`
  const next = nextPollAt === null ? '' : `, next at ${nextPollAt}`
  const complete =
    lastCompleteWalkAt === null ? 'not known to be complete' : `complete as of ${lastCompleteWalkAt}`
  return [
    `source ${name} (${state}) ${polled}${next}; what the feed showed is ${complete}${behind ? ', and older pages are still read' : ''}`,
  ]
}

function reasonsOf({ state, lastPollAt, behind }: SourceView, after: DeliveryRow | undefined): string[] {
  const notYet = state !== 'running' || behind || lastPollAt === null || after === undefined
  return [
    ...(notYet ? ['the feed may show it at a poll that comes'] : []),
    'it fired before startFrom and was passed over',
    'the feed of this account never showed it',
    'its record is older than retention keeps',
  ]
}

function rowText({ source, id, firedAt, seenAt }: DeliveryRow): string {
  return `${source}.${id}, fired ${firedAt}, seen ${seenAt ?? 'at an unknown time'}`
}
