import * as z from 'zod'
import { readCursor, writeCursor } from '../delivery/records/cursor.ts'
import { portionFields } from './fields.ts'

/** The parameters of a list that is read whole and answered in pages. */
export const pageFields = {
  limit: z.coerce.number().int().min(1).max(500).default(500),
  cursor: portionFields.cursor,
}

interface Page<T> {
  readonly data: readonly T[]
  /** On this page and on all others. */
  readonly total: number
  /** null on the last page. */
  readonly cursor: string | null
}

/**
 * One page of a list in the order of `keyOf`, which names each row and never changes. A cursor is such a name: rows that come and go
 * between two pages neither repeat others nor hide them.
 */
export function pageOf<T>(
  rows: readonly T[],
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
  keyOf: (row: T) => string,
  direction: 'up' | 'down' = 'up',
): Page<T> {
  const sign = direction === 'up' ? 1 : -1
  const inOrder = (a: string, b: string) => (a === b ? 0 : a < b ? -sign : sign)
  const place = cursor === undefined ? undefined : readCursor(placeSchema, cursor)
  const ahead = rows
    .map((row) => ({ row, key: keyOf(row) }))
    .filter(({ key }) => place === undefined || inOrder(key, place.after) > 0)
    .sort((a, b) => inOrder(a.key, b.key))
  const last = ahead.length > limit ? ahead[limit - 1] : undefined
  return {
    data: ahead.slice(0, limit).map(({ row }) => row),
    total: rows.length,
    cursor: last === undefined ? null : writeCursor({ after: last.key }),
  }
}

const placeSchema = z.object({ after: z.string() })
