import * as z from 'zod'
import { cursorInstant } from './cursor.ts'

/** Which ended deliveries an operator selects; all conditions must be true. Times are milliseconds since the epoch. */
export interface Selection {
  /** `SOURCE.ID`, the alert in every sink and target, or the whole id of a job. With ids no time counts. */
  readonly ids?: readonly string[]
  readonly sink?: string
  /** Of dead letters: why they were given up on, in a word. */
  readonly reason?: string
  readonly sinceMs?: number
  readonly untilMs?: number
}

export type EndState = 'completed' | 'failed'

/** An operation on ended deliveries, which is done in portions: each call does one and returns where the next begins. */
export interface Order extends Selection, PortionOrder {}

/** An operation that is carried out in portions: the caller repeats it with the cursor of the answer. */
export interface PortionOrder {
  /** Selects by the same rules, and changes nothing: `handled` is what it would be. */
  readonly dryRun?: true
  /** Where the portion before ended; without it the operation begins. */
  readonly cursor?: string
  /** Goes on with an operation that broke off: the instant at which it began. What it put back is not put back again. */
  readonly atMs?: number
  /**
   * Stores until when what has ended belongs to the operation, where nothing is stored, and returns what is: one that broke off takes
   * the same records when it is begun again.
   */
  readonly keepThrough?: (throughMs: number) => Promise<number>
  /** How many records this call looks at, at most; 0 only counts them. */
  readonly limit?: number
}

/** One that an operation means, for people to know it by. */
export interface SampleAlert {
  readonly source: string
  readonly id: number
  /** When it fired; when it was first seen where that is not known. */
  readonly firedAtMs: number
}

export interface Portion extends PortionEnd {
  readonly handled: number
  /** Were selected, but gone when they were reached: too old by now, or another request was faster. */
  readonly gone: number
  readonly looked: number
  /** Ids of the selection that have no record in any of its sinks. */
  readonly missing: readonly string[]
  /** Only of a dry run: the alerts of the portion that fired last, each once. */
  readonly sample?: readonly SampleAlert[]
}

/** How far an operation is after a portion, for the caller. */
export interface PortionEnd {
  /** How many records the whole operation has to look at. */
  readonly total: number
  /** When the operation began, which is its name. */
  readonly atMs: number
  /** Absent when all is done. */
  readonly cursor?: string
}

/** How far an operation is, as its cursor says. */
export type Progress = z.infer<typeof progressSchema>

export const progressSchema = z.object({
  v: z.literal(1),
  atMs: cursorInstant,
  /** What ended later is not part of the operation. */
  throughMs: cursorInstant,
  total: z.number(),
  /** Of a selection by ids: how many of them are done. */
  idsDone: z.number().int().min(0).default(0),
  /** Of any other selection. */
  place: z
    .object({
      sink: z.string(),
      state: z.enum(['completed', 'failed']),
      endedAtMs: z.number(),
      jobId: z.string(),
    })
    .optional(),
})
