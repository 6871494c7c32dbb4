import * as z from 'zod'
import { readJson } from '../../alert/json/json.ts'
import { cut } from '../../alert/text/text.ts'
import { type Answer, answerTextMax } from '../../sinks/outcome.ts'

/**
 * One attempt as it is stored with its job: in the job's log if it failed, as the job's return value if it was
 * acknowledged (in the log too, once it is sent again). Parsed again when read, since a newer or older version may have
 * written it.
 */
export type AttemptRecord = z.infer<typeof attemptRecordSchema>

/** Attempts that are kept with a job; the oldest go first. */
export const recordsMax = 100

interface Attempted {
  readonly number: number
  readonly atMs: number
  readonly durationMs: number
  readonly result: AttemptRecord['result']
  readonly reason?: string
  readonly answer: Answer
  readonly nextAtMs?: number
  readonly skipped?: AttemptRecord['skipped']
}

export function attemptRecord({ answer, ...attempt }: Attempted): AttemptRecord {
  const { status, text } = answer
  return { ...attempt, ...(status === undefined ? {} : { status }), text: cut(text, answerTextMax) }
}

/** From the job's log (text) or its return value (an object); undefined for anything else. */
export function parseAttemptRecord(stored: unknown): AttemptRecord | undefined {
  const parsed = attemptRecordSchema.safeParse(typeof stored === 'string' ? readJson(stored) : stored)
  return parsed.success ? parsed.data : undefined
}

const attemptRecordSchema = z.object({
  /** From 1; attempts that were not counted carry the number of the one that comes. */
  number: z.number(),
  atMs: z.number(),
  durationMs: z.number(),
  result: z.enum(['delivered', 'retry', 'dead', 'expired']),
  reason: z.string().optional(),
  status: z.number().optional(),
  text: z.string(),
  nextAtMs: z.number().optional(),
  /** Of an acknowledged alert: what of its context it went out without, and why. */
  skipped: z
    .array(z.object({ what: z.string(), why: z.string() }).readonly())
    .readonly()
    .optional(),
})

/** Why an alert was given up on that was too old before it was sent. */
export const tooOldText = 'too old for this sink'
