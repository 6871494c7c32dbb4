import type { Command } from 'commander'
import { formatCount } from '../admin/page/words/en.ts'
import type { SeenView } from '../admin/ports.ts'
import type { AlertStory, DeliveryRow } from '../admin/views/delivery-view.ts'
import type { QuarantinedRow, SourceView, StatusView } from '../admin/views/status-view.ts'
import { NotFoundError } from '../lib/errors.ts'
import { alertOf } from './arguments/usage.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { namedCommand } from './command-texts.ts'
import { describeAlert } from './deliveries.ts'
import { print, printJson, sentence } from './output/output.ts'

/** What is known around an alert that the bridge has no record of. */
interface Around {
  readonly source: string
  readonly id: number
  readonly status: StatusView
  /** The row with this id, where it could not be read. */
  readonly quarantined: QuarantinedRow | undefined
  /** Absent where there is no such source, and from an earlier version. */
  readonly seen: SeenView | undefined
  /** Of the alerts of this source that have a record, those next to it by their ids. */
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
      // As of other commands to which an alert is named that is not known.
      process.exitCode = 1
      const { status: _, ...shown } = around
      return options.json ? printJson({ known: false, ...shown }) : print(describeAround(around))
    })
}

async function storyOf(daemon: Daemon, source: string, id: number): Promise<AlertStory | undefined> {
  return (await orNone(daemon.get(`/api/v1/deliveries/${source}/${id}`) as Promise<{ data: AlertStory }>))
    ?.data
}

async function aroundOf(daemon: Daemon, source: string, id: number): Promise<Around> {
  const [status, seen, quarantine] = await Promise.all([
    daemon.get('/api/v1/status') as Promise<StatusView>,
    orNone(daemon.get(`/api/v1/sources/${source}/seen/${id}`) as Promise<{ data: SeenView }>),
    daemon.get('/api/v1/quarantine', { limit: '500' }) as Promise<{ data: QuarantinedRow[] }>,
  ])
  const isKnown = status.sources.some(({ name }) => name === source)
  return {
    source,
    id,
    status,
    seen: seen?.data,
    quarantined: quarantine.data.find((row) => row.source === source && row.key === String(id)),
    ...(isKnown ? await neighboursOf(daemon, source, id) : { before: undefined, after: undefined }),
  }
}

async function orNone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (thrown) {
    if (thrown instanceof NotFoundError) return undefined
    throw thrown
  }
}

/** Those next to it by their ids, found by binary search over the firing times, since ids have been seen to grow with time. */
async function neighboursOf(
  daemon: Daemon,
  source: string,
  id: number,
): Promise<Pick<Around, 'before' | 'after'>> {
  const list = async (query: Record<string, string>) =>
    ((await daemon.get('/api/v1/deliveries', { source, ...query })) as { data: DeliveryRow[] }).data
  const at = (ms: number) => new Date(ms).toISOString()
  const isBefore = async (ms: number) => {
    const [row] = await list({ until: at(ms), limit: '1' })
    return row === undefined || row.id < id
  }
  let [lowMs, highMs] = [Date.now(), Date.now()]
  for (let spanMs = hourMs; lowMs > 0 && !(await isBefore(lowMs)); spanMs *= 2) {
    highMs = lowMs
    lowMs = Math.max(0, lowMs - spanMs)
  }
  while (highMs - lowMs > nearMs) {
    const middleMs = Math.floor((lowMs + highMs) / 2)
    if (await isBefore(middleMs)) lowMs = middleMs
    else highMs = middleMs
  }
  const [below, above] = await Promise.all([
    list({ until: at(lowMs), limit: '50' }),
    list({ since: at(lowMs), until: at(highMs + nearMs), limit: '500' }),
  ])
  const rows = [...below, ...above].sort((a, b) => a.id - b.id)
  return { before: rows.findLast((row) => row.id < id), after: rows.find((row) => row.id > id) }
}

const hourMs = 3_600_000
/** Alerts within it are read and compared one by one. */
const nearMs = 60_000

function describeAround({ source, id, status, seen, quarantined, before, after }: Around): string {
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
    ...(seen ? [seenText(seen)] : []),
    ...(before ? [`the one before it that is known: ${rowText(before)}`] : []),
    ...(after ? [`the one after it that is known: ${rowText(after)}`] : []),
    ...(known && !quarantined ? [`so ${reasonsOf(known, seen, after).join(', or ')}`] : []),
  ]
  return lines.map((line) => sentence(line)).join('\n')
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
    lastCompleteWalkAt === null
      ? 'not known to be handled completely'
      : `handled completely as of ${lastCompleteWalkAt}`
  return [
    `source ${name} (${state}) ${polled}${next}; what the feed showed is ${complete}${behind ? ', and older pages are still read' : ''}`,
  ]
}

function seenText({ seen, forgets }: SeenView): string {
  if (seen) return 'the feed has shown it'
  return `the feed was not seen to have it${forgets ? ', as far as is remembered' : ''}`
}

function reasonsOf(
  { state, lastPollAt, behind }: SourceView,
  seen: SeenView | undefined,
  after: DeliveryRow | undefined,
): string[] {
  if (seen?.dropped) return ['an operator dropped it']
  const { leavesOut = true, leftOut = 0 } = seen ?? {}
  const count = leftOut > 0 ? `, as ${formatCount(leftOut)} were` : ''
  const passedOver = leavesOut ? [`it fired before startFrom and was passed over${count}`] : []
  if (seen?.seen) return [...passedOver, 'its record was dropped, or is older than retention keeps']
  const notYet = state !== 'running' || behind || lastPollAt === null || after === undefined
  return [
    ...(notYet ? ['the feed may show it at a poll that comes'] : []),
    ...passedOver,
    'the feed of this account never showed it',
    ...(seen?.forgets === false ? [] : ['its record is older than retention keeps']),
  ]
}

function rowText({ source, id, firedAt, seenAt }: DeliveryRow): string {
  return `${source}.${id}, fired ${firedAt}, seen ${seenAt ?? 'at an unknown time'}`
}
