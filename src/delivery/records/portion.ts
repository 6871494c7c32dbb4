import { fromJobData } from '../../alert/job.ts'
import type { Clock } from '../../lib/clock.ts'
import { given } from '../../lib/given.ts'
import { within } from '../../lib/time-limit.ts'
import type { TimeRange } from '../../store/by-time.ts'
import { stepOn } from '../bounded-steps.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { type AlertJob, jobIdsOf, type SinkQueues } from '../queue/queues.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { countEnded, type EndedSet, endedAfter, lastEndedMs } from './ended.ts'
import { newestOf, sampleOf } from './sample.ts'
import {
  type EndState,
  type Order,
  type Portion,
  type Progress,
  progressSchema,
  type SampleAlert,
  type Selection,
} from './selection.ts'

/**
 * One bounded portion of an operation on ended deliveries: so many records, and no more time than a caller waits for.
 * Nothing about an operation is stored between its portions: the cursor says how far it is, and the jobs that it put
 * back store its instant, so that a portion that is requested twice does nothing twice.
 */
export interface PortionOptions {
  readonly queues: SinkQueues
  /** The targets of each sink, as the sink itself names them. */
  readonly targets: ReadonlyMap<string, readonly (string | undefined)[]>
  readonly clock: Clock
  /** How long one portion may take, give or take the commands that are under way. */
  readonly portionMs?: number | undefined
}

export interface Operation {
  /** For the text of an error. */
  readonly name: string
  readonly states: readonly EndState[]
  /** What of a sink's records is looked at at all, by when they ended; known without reading them. */
  readonly range: TimeRange
  isWanted(job: AlertJob, progress: Progress): boolean
  /** Does it to one; false when it has gone, or is not in its state any more. Harmless when it is done again. */
  act(found: Selected, progress: Progress): Promise<boolean>
}

export interface Selected {
  readonly sink: string
  readonly job: AlertJob
  readonly state: EndState
}

export async function runPortion(
  operation: Operation,
  order: Order,
  options: PortionOptions,
): Promise<Portion> {
  const begun =
    order.cursor === undefined
      ? await begin(operation, order, options)
      : readCursor(progressSchema, order.cursor)
  const sample: SampleAlert[] | undefined = order.dryRun && []
  const tally = { handled: 0, gone: 0, looked: 0, missing: [] as string[], ...given({ sample }) }
  const progress = await stepOn(begun, { ...options, limit: order.limit }, tally, (at, left) =>
    step(operation, order, at, left, tally, options),
  )
  const { atMs, total } = begun
  return { ...tally, total, atMs, ...(progress === undefined ? {} : { cursor: writeCursor(progress) }) }
}

interface Tally {
  handled: number
  gone: number
  looked: number
  readonly missing: string[]
  sample?: SampleAlert[]
}

/** Read together: a row may be as large as a page of the feed. */
const batchMax = 25

async function begin(
  operation: Operation,
  { atMs, keepThrough, ...selection }: Order,
  options: PortionOptions,
): Promise<Progress> {
  const nowMs = options.clock.now()
  // Refuses a sink that there is not, also of an order by ids that only counts.
  const sets = setsOf(operation, selection, options)
  if (selection.ids !== undefined)
    return { v: 1, atMs: atMs ?? nowMs, throughMs: nowMs, total: new Set(selection.ids).size, idsDone: 0 }
  // The clock of another replica may run ahead: what has ended by now belongs to the operation, whatever date it has.
  const newest = await Promise.all(sets.map((set) => lastEndedMs(set)))
  const latestMs = Math.max(nowMs, ...newest.map((ms) => ms ?? 0))
  const throughMs = keepThrough ? await keepThrough(latestMs) : (atMs ?? latestMs)
  const range = clip(operation.range, throughMs)
  const counts = await Promise.all(sets.map((set) => countEnded(set, range)))
  const total = counts.reduce((sum, count) => sum + count, 0)
  return { v: 1, atMs: atMs ?? nowMs, throughMs, total, idsDone: 0 }
}

/** One batch further; undefined when there is nothing after it. */
function step(
  operation: Operation,
  selection: Selection,
  progress: Progress,
  left: number,
  tally: Tally,
  options: PortionOptions,
): Promise<Progress | undefined> {
  return selection.ids === undefined
    ? stepByTime(operation, selection, progress, Math.min(left, batchMax), tally, options)
    : stepByIds(operation, { ...selection, ids: selection.ids }, progress, tally, options)
}

async function stepByTime(
  operation: Operation,
  selection: Selection,
  progress: Progress,
  count: number,
  tally: Tally,
  options: PortionOptions,
): Promise<Progress | undefined> {
  const { place, throughMs } = progress
  const range = clip(operation.range, throughMs)
  const sets = setsOf(operation, selection, options)
  const current = place && sets.find(({ sink, state }) => sink === place.sink && state === place.state)
  const ahead = place ? sets.filter((set) => isBeyond(set, place, operation)) : sets
  for (const set of current ? [current, ...ahead] : ahead) {
    const page = await endedAfter(set, range, set === current ? place : undefined, count)
    const last = page.at(-1)
    if (last === undefined) continue
    const reading = Promise.all(page.map(({ jobId }) => set.queue.getJob(jobId)))
    const jobs = await within(commandTimeoutMs, 'reading ended deliveries', reading)
    const wanted = jobs
      .filter((job) => job !== undefined)
      .filter((job) => operation.isWanted(job, progress))
      .map((job) => ({ sink: set.sink, state: set.state, job }))
    await act(operation, wanted, progress, tally)
    tally.gone += jobs.filter((job) => job === undefined).length
    tally.looked += page.length
    return { ...progress, place: { sink: set.sink, state: set.state, ...last } }
  }
  return undefined
}

/** One id, in every sink and target that it may have gone to. */
async function stepByIds(
  operation: Operation,
  selection: Required<Pick<Selection, 'ids'>> & Selection,
  progress: Progress,
  tally: Tally,
  options: PortionOptions,
): Promise<Progress | undefined> {
  const { queues, targets } = options
  const id = [...new Set(selection.ids)][progress.idsDone]
  if (id === undefined) return undefined
  const sinks = selection.sink === undefined ? queues.sinks : [selection.sink]
  const alert = alertOf(id)
  const reads = sinks.map(async (sink) => {
    const queue = queues.queue(sink)
    const own = { redis: queues.redis, queue, targets: targets.get(sink) ?? [] }
    const jobIds = alert === undefined ? [id] : await jobIdsOf(alert, own)
    const read = jobIds.map(async (jobId) => {
      const [job, state] = await Promise.all([queue.getJob(jobId), queue.getJobState(jobId)])
      return { sink, job, state }
    })
    return Promise.all(read)
  })
  const found = (await within(commandTimeoutMs, 'reading a delivery', Promise.all(reads))).flat()
  const wanted = found.flatMap(({ sink, job, state }) => {
    const ended = operation.states.find((each) => each === state)
    return job && ended && operation.isWanted(job, progress) ? [{ sink, job, state: ended }] : []
  })
  await act(operation, wanted, progress, tally)
  if (found.every(({ job }) => job === undefined)) tally.missing.push(id)
  tally.looked += 1
  return { ...progress, idsDone: progress.idsDone + 1 }
}

async function act(
  operation: Operation,
  wanted: readonly Selected[],
  progress: Progress,
  tally: Tally,
): Promise<void> {
  if (tally.sample !== undefined) {
    tally.handled += wanted.length
    const alerts = wanted.flatMap(({ sink, job }) => {
      const parsed = fromJobData(sink, job.data)
      return parsed.ok ? [sampleOf(parsed.job)] : []
    })
    tally.sample = newestOf([...tally.sample, ...alerts])
    return
  }
  const acts = wanted.map((each) => within(commandTimeoutMs, operation.name, operation.act(each, progress)))
  for (const act of await Promise.allSettled(acts)) {
    if (act.status === 'rejected') continue
    if (act.value) tally.handled += 1
    else tally.gone += 1
  }
  await Promise.all(acts)
}

interface SinkSet extends EndedSet {
  readonly sink: string
}

/** In a fixed order, which a reload between two portions does not change. */
function setsOf(operation: Operation, { sink }: Selection, { queues }: PortionOptions): SinkSet[] {
  const sinks = sink === undefined ? [...queues.sinks].sort() : [sink]
  return sinks.flatMap((name) =>
    operation.states.map((state) => ({
      sink: name,
      state,
      redis: queues.redis,
      queue: queues.queue(name),
    })),
  )
}

function isBeyond(set: SinkSet, place: { sink: string; state: EndState }, { states }: Operation): boolean {
  if (set.sink !== place.sink) return set.sink > place.sink
  return states.indexOf(set.state) > states.indexOf(place.state)
}

function clip({ fromMs, throughMs }: TimeRange, endMs: number): TimeRange {
  return { fromMs, throughMs: Math.min(throughMs, endMs) }
}

/** undefined for the whole id of a job of one target. */
function alertOf(id: string): { source: string; id: number } | undefined {
  const match = /^(.+)\.(\d+)$/.exec(id)
  return match ? { source: match[1] ?? '', id: Number(match[2]) } : undefined
}
