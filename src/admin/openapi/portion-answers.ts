import * as z from 'zod'
import { count, cursor, instant } from './answers.ts'

const text = z.string()

/** One portion of an order: `counted` is what it did. */
export function portionAnswer(counted: 'queued' | 'retried' | 'dropped') {
  return z.object({ [counted]: count, unknown: z.array(text), ...portionEnd })
}

export function orphanPortionAnswer(counted: 'moved' | 'dropped') {
  return z.object({ [counted]: count, there: count, busy: count, unreadable: count, ...portionEnd })
}

const sampleAlert = z.object({ source: text, id: z.int(), firedAt: instant })
const portionEnd = {
  gone: count,
  looked: count,
  total: count,
  dryRun: z.literal(true).optional(),
  sample: z.array(sampleAlert).optional(),
  at: instant,
  cursor,
}
