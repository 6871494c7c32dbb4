import * as z from 'zod'
import { MalformedError } from '../../lib/errors.ts'

/** Where a portion or a page ended, as text that callers give back unchanged. */
export function writeCursor(place: object): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

/** The caller may have changed it: it is checked as strictly as everything else in a request. */
export function readCursor<T>(schema: z.ZodType<T>, text: string): T {
  try {
    return schema.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
  } catch (cause) {
    throw new MalformedError('This cursor was not made by this bridge, or by another version of it.', {
      cause,
    })
  }
}

const furthestMs = 8.64e15

/** An instant in a cursor: one that can be written as a date. */
export const cursorInstant = z.number().min(-furthestMs).max(furthestMs)

/** Where a page of a search ended: at this alert. */
export const searchPlace = z.object({
  atMs: cursorInstant,
  name: z.string(),
  /** The last of its rows that was on pages before, '' where none was; absent: all of them were. */
  after: z.string().optional(),
})
