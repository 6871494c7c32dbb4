import { type Alert, alertOfKey } from '../../alert/alert.ts'
import { fromJobData, targetTag } from '../../alert/job.ts'
import { NotFoundError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import { within } from '../../lib/time-limit.ts'
import type { FiredAlert, FiredAlerts } from '../../store/fired-alerts.ts'
import { droppedName } from '../../store/keys.ts'
import type { WithheldRecord } from '../../store/walk/withheld.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { type AlertQueue, type SinkQueues, tagsOf } from '../queue/queues.ts'
import { readDueMs } from '../queue/view.ts'
import { type JobState, type JobView, viewOfJob } from './job-view.ts'

/**
 * Reads what is known of alerts, many at once: of each its deliveries and what was withheld. States come from the queues' sets and
 * not from BullMQ's own call, which looks through the whole list of those that wait, once for each.
 */
interface AlertReader {
  /**
   * Those of `alerts` that are wanted, in their order. Of others no more is read than shows that. Comes in parts, and no more
   * than a part is read before the caller asks for the next: a row may be as large as a page of the feed.
   */
  read(alerts: readonly FiredAlert[], wanted: AlertFilter): AsyncGenerator<readonly FoundAlert[]>
  /** The names of those of which nothing is kept any more. */
  gone(names: readonly string[]): Promise<string[]>
  /** What operators dropped of them, the latest first, as far as it is remembered. */
  dropped(names: readonly string[]): Promise<DroppedJob[]>
}

interface DroppedJob {
  /** Of the alert. */
  readonly name: string
  readonly sink: string
  /** Of a sink with several; absent where the config has it no more. */
  readonly target?: string
  readonly atMs: number
}

interface AlertFilter {
  /** Absent: every alert. */
  readonly isWanted?: (alert: Alert) => Promise<boolean>
  readonly state?: JobState | 'held'
}

export interface FoundAlert {
  readonly fired: FiredAlert
  /** Only those in the state that is wanted. */
  readonly jobs: readonly JobView[]
  /** The sinks that have a delivery of it, in whatever state. */
  readonly sinks: ReadonlySet<string>
  readonly withheld?: WithheldRecord
  /** As the feed had it, with each number as it was spelled: only read where it is asked for. */
  row(): Readonly<Record<string, unknown>> | undefined
}

export interface ReaderOptions {
  readonly queues: SinkQueues
  readonly targets: ReadonlyMap<string, readonly (string | undefined)[]>
  /** Sinks that are not in the config and have records: they left it, or another process has them in its own. */
  readonly orphans: () => Promise<readonly string[]>
  /** What was withheld of each, in their order. */
  readonly withheldOf: (names: readonly string[]) => Promise<readonly (WithheldRecord | undefined)[]>
  readonly alertOf: (source: string, record: WithheldRecord) => Alert | undefined
}

/** For one request. Without `sink`, deliveries of every sink are read. */
export async function openReader(options: ReaderOptions, sink?: string): Promise<AlertReader> {
  const sinks = await within(commandTimeoutMs, 'reading the sinks', recordsOf(options, sink))
  return {
    async *read(alerts, wanted) {
      const inTime = <T>(reading: Promise<T>) => within(commandTimeoutMs, 'reading alerts', reading)
      const known = storedStates.find((each) => each === wanted.state)
      const inState = known === undefined ? alerts : await inTime(inSet(options, sinks, alerts, known))
      for (let from = 0; from < inState.length; from += partMax)
        yield await inTime(readAlerts(options, sinks, inState.slice(from, from + partMax), wanted))
    },
    gone: (names) => within(commandTimeoutMs, 'looking for records', goneOf(options, sinks, names)),
    dropped: (names) =>
      within(commandTimeoutMs, 'looking for dropped letters', droppedOf(options, sinks, names)),
  }
}

/**
 * Removes alerts without records from `fired`: of a sample, and of another one while many of it were such. So what is there stays
 * at most about a quarter more than there are alerts with records, however long it runs.
 */
export async function forgetGone(fired: FiredAlerts, options: ReaderOptions): Promise<void> {
  for (let round = 0; round < roundsMax; round += 1) {
    const names = await fired.some(sampleCount)
    const gone = await (await openReader(options)).gone(names)
    await fired.remove(gone)
    // Also where there is no alert at all.
    if (gone.length <= names.length / 5) return
  }
}

/** Alerts that are read together, with all their deliveries. */
const partMax = 25
const sampleCount = 200
/** A million alerts in all: more than any hour brings. */
const roundsMax = 5_000
/** More than any number of processes send at once. */
const activeMax = 10_000

/** Where the records of one sink are read. */
interface SinkRecords {
  readonly sink: string
  readonly queue: AlertQueue
  readonly tags: readonly (string | undefined)[]
  /** Ids of the jobs that are being sent. */
  readonly active: ReadonlySet<string>
}

async function recordsOf(
  { queues, targets, orphans }: ReaderOptions,
  sink: string | undefined,
): Promise<SinkRecords[]> {
  const known = [...queues.sinks, ...(await orphans())]
  if (sink !== undefined && !known.includes(sink)) throw new NotFoundError(`There is no sink ${sink}.`)
  const work = (sink === undefined ? known : [sink]).map(async (name) => {
    const queue = queues.anyQueue(name)
    const [tags, active] = await Promise.all([
      tagsOf({ redis: queues.redis, queue, targets: targets.get(name) ?? [] }),
      queues.redis.lrange(queue.toKey('active'), 0, activeMax - 1),
    ])
    return { sink: name, queue, tags, active: new Set(active) }
  })
  return Promise.all(work)
}

interface Candidate {
  readonly records: SinkRecords
  readonly jobId: string
  readonly state: JobState
}

/** Narrows down by what costs least: the alerts themselves, then their deliveries. */
async function readAlerts(
  options: ReaderOptions,
  sinks: readonly SinkRecords[],
  alerts: readonly FiredAlert[],
  { isWanted, state }: AlertFilter,
): Promise<FoundAlert[]> {
  const wanted = isWanted === undefined ? alerts : await wantedOf(options, sinks, alerts, isWanted)
  const withheldOf = async () => {
    const records = await options.withheldOf(wanted.map(({ name }) => name))
    return new Map(wanted.map(({ name }, at) => [name, records[at]]))
  }
  const withheld = state === undefined || state === 'held' ? await withheldOf() : new Map<string, undefined>()
  const meant = state === 'held' ? wanted.filter(({ name }) => withheld.get(name) !== undefined) : wanted
  const candidates = await candidatesOf(
    options,
    sinks,
    meant.map(({ name }) => name),
  )
  const found = meant.map(async (fired, at): Promise<FoundAlert> => {
    const all = candidates[at] ?? []
    const own = all.filter((each) => state === undefined || each.state === state)
    const views = (await Promise.all(own.map(viewOf))).filter((view) => view !== undefined)
    const record = withheld.get(fired.name)
    const row = () => (views[0] ?? record)?.row
    const having = new Set(all.map(({ records }) => records.sink))
    return { fired, jobs: views.map(({ view }) => view), sinks: having, ...given({ withheld: record }), row }
  })
  return (await Promise.all(found)).filter(({ jobs, withheld }) => jobs.length > 0 || withheld !== undefined)
}

type StoredState = (typeof storedStates)[number]
const storedStates = ['completed', 'failed', 'delayed'] as const

async function inSet(
  { queues: { redis } }: ReaderOptions,
  sinks: readonly SinkRecords[],
  alerts: readonly FiredAlert[],
  state: StoredState,
): Promise<FiredAlert[]> {
  if (alerts.length === 0) return []
  const asked = sinks.flatMap(({ queue, tags }) =>
    tags.map((tag) => redis.zmscore(queue.toKey(state), ...alerts.map(({ name }) => jobIdOf(name, tag)))),
  )
  const scores = await Promise.all(asked)
  return alerts.filter((_, at) => scores.some((each) => each[at] != null))
}

/** Of each alert, the jobs that there are. */
async function candidatesOf(
  { queues: { redis } }: ReaderOptions,
  sinks: readonly SinkRecords[],
  names: readonly string[],
): Promise<Candidate[][]> {
  const found: Candidate[][] = names.map(() => [])
  if (names.length === 0) return found
  const look = async (records: SinkRecords, tag: string | undefined) => {
    const ids = names.map((name) => jobIdOf(name, tag))
    const scores = await Promise.all(
      storedStates.map((state) => redis.zmscore(records.queue.toKey(state), ...ids)),
    )
    const states = ids.map(async (jobId, at) => {
      const stored = storedStates.find((_, set) => scores[set]?.[at] != null)
      if (stored !== undefined) return stored
      if ((await redis.exists(records.queue.toKey(jobId))) === 0) return undefined
      return records.active.has(jobId) ? 'active' : 'waiting'
    })
    for (const [at, state] of (await Promise.all(states)).entries())
      if (state !== undefined) found[at]?.push({ records, jobId: ids[at] ?? '', state })
  }
  await Promise.all(sinks.flatMap((records) => records.tags.map((tag) => look(records, tag))))
  return found
}

function jobIdOf(name: string, tag: string | undefined): string {
  return tag === undefined ? name : `${name}.${tag}`
}

/** Reads the alert of each from the first place that has it: all its deliveries carry the same one. */
async function wantedOf(
  { queues: { redis }, withheldOf, alertOf }: ReaderOptions,
  sinks: readonly SinkRecords[],
  alerts: readonly FiredAlert[],
  isWanted: (alert: Alert) => Promise<boolean>,
): Promise<FiredAlert[]> {
  const read = alerts.map(async ({ name }) => {
    for (const { sink, queue, tags } of sinks)
      for (const tag of tags) {
        const text = await redis.hget(queue.toKey(jobIdOf(name, tag)), 'data')
        const parsed = text === null ? undefined : fromJobData(sink, JSON.parse(text))
        if (parsed?.ok) return parsed.job.alert
      }
    return undefined
  })
  const sent = await Promise.all(read)
  const others = alerts.filter((_, at) => sent[at] === undefined).map(({ name }) => name)
  const records = await withheldOf(others)
  const withheld = new Map(others.map((name, at) => [name, records[at]]))
  const wanted: FiredAlert[] = []
  for (const [at, fired] of alerts.entries()) {
    const record = withheld.get(fired.name)
    const alert = sent[at] ?? (record && alertOf(alertOfKey(fired.name).source, record))
    if (alert !== undefined && (await isWanted(alert))) wanted.push(fired)
  }
  return wanted
}

async function viewOf({ records, jobId, state }: Candidate) {
  const job = await records.queue.getJob(jobId)
  if (!job) return undefined
  const dueMs = state === 'delayed' ? await readDueMs(records.queue, jobId) : undefined
  return {
    view: viewOfJob(records.sink, job, state, dueMs),
    get row() {
      const parsed = fromJobData(records.sink, job.data)
      return parsed.ok ? parsed.job.alert.row : undefined
    },
  }
}

async function droppedOf(
  { queues: { redis }, targets }: ReaderOptions,
  sinks: readonly SinkRecords[],
  names: readonly string[],
): Promise<DroppedJob[]> {
  if (names.length === 0) return []
  const asked = sinks.flatMap(({ sink, queue, tags }) =>
    tags.map(async (tag) => {
      const times = await redis.zmscore(queue.toKey(droppedName), ...names.map((name) => jobIdOf(name, tag)))
      const target =
        tag === undefined ? undefined : targets.get(sink)?.find((each) => targetTag(each) === tag)
      return names.flatMap((name, at) => {
        const seconds = times[at] ?? null
        return seconds === null ? [] : [{ name, sink, ...given({ target }), atMs: Number(seconds) * 1_000 }]
      })
    }),
  )
  return (await Promise.all(asked)).flat().sort((a, b) => b.atMs - a.atMs)
}

async function goneOf(
  { queues: { redis }, withheldOf }: ReaderOptions,
  sinks: readonly SinkRecords[],
  names: readonly string[],
): Promise<string[]> {
  const withheld = await withheldOf(names)
  const counts = names.map((name) => {
    const keys = sinks.flatMap(({ queue, tags }) => tags.map((tag) => queue.toKey(jobIdOf(name, tag))))
    return keys.length === 0 ? 0 : redis.exists(...keys)
  })
  const found = await Promise.all(counts)
  return names.filter((_, at) => found[at] === 0 && withheld[at] === undefined)
}
