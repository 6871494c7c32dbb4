import { createHash } from 'node:crypto'
import * as z from 'zod'
import { given } from '../lib/given.ts'
import { type Alert, alertKey, parseRow } from './alert.ts'
import { believedAt } from './fired-at.ts'
import { isMapping } from './json/json.ts'
import { JsonNumber, jsonNumberForm, jsonNumbers, mapNumbers } from './json/json-number.ts'

/**
 * The unit of the queue: one alert for one target of one sink. Intake writes it and delivery reads it, possibly weeks
 * later and in a newer version, so its stored form has a version and is parsed when it is read.
 */
export interface DeliveryJob {
  readonly sink: string
  /** Part of the sink that this job is for (an email recipient); absent for sinks with one target. */
  readonly target?: string
  readonly alert: Alert
  /** When the feed first showed the alert to this bridge, in milliseconds since the epoch. */
  readonly seenAtMs: number
  /** When an operator last asked to send it (again), in milliseconds since the epoch. */
  readonly requestedAtMs?: number
  /** How many alerts like this one a throttle held back before it. */
  readonly heldBack?: number
  /** What the routes that took it were called then; absent where an operator sent it to this sink. */
  readonly routes?: readonly string[]
  /** The page of the feed that it was on; absent for the first. */
  readonly page?: number
  /** It fired before its source was set up: how late it comes says nothing of the bridge. */
  readonly isHistory?: true
}

export type JobData = z.infer<typeof jobDataSchema>

/** A job as its queue stores it. The id is fixed, so that adding it again changes nothing. */
export interface StoredJob {
  readonly id: string
  /** Of its target. */
  readonly tag: string | undefined
  readonly data: JobData
}

/** A job for each of these targets of its sink; without them, for its single one. */
export function forTargets(
  job: Omit<DeliveryJob, 'target'>,
  targets: readonly DeliveryJob['target'][] = [undefined],
): DeliveryJob[] {
  return targets.map((target) => (target === undefined ? job : { ...job, target }))
}

export function storedJob(job: DeliveryJob): StoredJob {
  const tag = targetTag(job.target)
  return { id: jobId(job.alert, tag), tag, data: toJobData(job) }
}

/** A hash, because recipients are long, may contain any character, and do not belong in a log. */
export function targetTag(target: DeliveryJob['target']): string | undefined {
  return target === undefined ? undefined : createHash('sha256').update(target).digest('hex').slice(0, 12)
}

/** Safe as a BullMQ id: never all digits, never with a colon. `targetTag` keeps two recipients of one alert apart. */
export function jobId(alert: Pick<Alert, 'source' | 'id'>, targetTag?: string): string {
  return targetTag === undefined ? alertKey(alert) : `${alertKey(alert)}.${targetTag}`
}

export function toJobData(job: DeliveryJob): JobData {
  const { alert, target, seenAtMs, requestedAtMs, heldBack, routes, page, isHistory } = job
  return {
    v: 1,
    source: alert.source,
    seenAtMs,
    ...storedRow(alert.row),
    ...(target === undefined ? {} : { target }),
    ...(requestedAtMs === undefined ? {} : { requestedAtMs }),
    ...(heldBack === undefined ? {} : { heldBack }),
    ...(routes === undefined ? {} : { routes: [...routes] }),
    ...(page === undefined ? {} : { page }),
    ...(isHistory === undefined ? {} : { isHistory }),
  }
}

/** The job that `data` describes, or the reason why it describes none. */
export function fromJobData(
  sink: string,
  data: unknown,
): { ok: true; job: DeliveryJob } | { ok: false; reason: string } {
  const parsed = jobDataSchema.safeParse(data)
  if (!parsed.success) return { ok: false, reason: 'the job data has an unknown shape' }
  const { source, seenAtMs, target, requestedAtMs, heldBack, routes, page, isHistory } = parsed.data
  const parsedRow = parseRow(source, rowIn(parsed.data))
  if (!parsedRow.ok) return parsedRow
  // A time that was in the future when the feed first showed the alert is no firing time, also when it is read later.
  const firedAtMs = believedAt(parsedRow.alert.firedAtMs, seenAtMs + clockSlackMs)
  return {
    ok: true,
    job: {
      sink,
      alert: { ...parsedRow.alert, firedAtMs },
      seenAtMs,
      ...given({ target, requestedAtMs, heldBack, routes, page, isHistory }),
    },
  }
}

/** When it fired; when it was seen where that is not known. It was not seen before it fired, whatever the clock of the feed says. */
export function firedMsOf({ alert, seenAtMs }: Pick<DeliveryJob, 'alert' | 'seenAtMs'>): number {
  return Math.min(alert.firedAtMs ?? seenAtMs, seenAtMs)
}

/** Its entry in `store/fired-alerts.ts`. */
export function firedAlertOf(job: Pick<DeliveryJob, 'alert' | 'seenAtMs'>): { name: string; atMs: number } {
  return { name: alertKey(job.alert), atMs: firedMsOf(job) }
}

/** Where this machine's clock is behind by less, messages still show the date. */
const clockSlackMs = 86_400_000

const jobDataSchema = z.object({
  v: z.literal(1),
  source: z.string(),
  seenAtMs: z.number(),
  target: z.string().optional(),
  requestedAtMs: z.number().optional(),
  heldBack: z.number().optional(),
  routes: z.array(z.string()).optional(),
  page: z.number().optional(),
  isHistory: z.literal(true).optional(),
  // Not a record of unknowns, which is copied field by field: rows are long, and nothing here depends on their fields.
  row: z.custom<Record<string, unknown>>(isMapping),
  /** The numbers in `row` that JavaScript would change: the index of each among all numbers, and how it was spelled. */
  spelled: z.array(z.tuple([z.int(), z.string().regex(jsonNumberForm)])).optional(),
})

type StoredRow = Pick<JobData, 'row' | 'spelled'>

/** A row of many numbers takes long, and is the same for every sink. */
const storedRows = new WeakMap<DeliveryJob['alert']['row'], StoredRow>()

/** Whoever reads the job in between (BullMQ, an older version) parses it as ordinary JSON. */
function storedRow(row: DeliveryJob['alert']['row']): StoredRow {
  const stored = storedRows.get(row) ?? toStoredRow(row)
  storedRows.set(row, stored)
  return stored
}

function toStoredRow(given: DeliveryJob['alert']['row']): StoredRow {
  const spelled: [nth: number, text: string][] = []
  let count = 0
  const row = mapNumbers(given, (each) => {
    if (each instanceof JsonNumber) spelled.push([count, each.text])
    count += 1
    return each.valueOf()
  })
  return spelled.length === 0 ? { row: given } : { row: row as JobData['row'], spelled }
}

function rowIn({ row, spelled }: JobData): unknown {
  if (spelled === undefined) return row
  const texts = new Map(spelled)
  const numberOf = jsonNumbers()
  let count = 0
  return mapNumbers(row, (each) => {
    const text = texts.get(count)
    count += 1
    return text === undefined ? each : numberOf(text)
  })
}
