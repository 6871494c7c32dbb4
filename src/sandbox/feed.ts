import { property } from '../alert/json/json.ts'

/**
 * One account's rows, newest first to the outside. Rows are kept oldest first, so that adding one is fast however long the
 * history is. A row may be anything: a bridge must work with bad rows too.
 */
export interface SandboxFeed {
  readonly total: number
  /** Newest first. */
  rows(): unknown[]
  /** Page `page` (from 1), newest first; empty beyond the end. */
  page(page: number): unknown[]
  add(row: unknown): void
  /** Inserts `row` at `atIndex` (0 is the newest place). */
  insert(row: unknown, atIndex: number): void
  /** Whether there was a row with this id. */
  remove(id: unknown): boolean
  removeAt(index: number): void
}

export const perPage = 100

export function createFeed(): SandboxFeed {
  const oldestFirst: unknown[] = []
  return {
    get total() {
      return oldestFirst.length
    },
    rows: () => oldestFirst.toReversed(),
    page(page) {
      const end = oldestFirst.length - (page - 1) * perPage
      return end <= 0 ? [] : oldestFirst.slice(Math.max(0, end - perPage), end).reverse()
    },
    add: (row) => {
      oldestFirst.push(row)
    },
    insert(row, atIndex) {
      oldestFirst.splice(Math.max(0, oldestFirst.length - atIndex), 0, row)
    },
    remove(id) {
      const index = oldestFirst.findLastIndex((row) => property(row, 'id') === id)
      if (index >= 0) oldestFirst.splice(index, 1)
      return index >= 0
    },
    removeAt(index) {
      if (index < oldestFirst.length) oldestFirst.splice(oldestFirst.length - 1 - index, 1)
    },
  }
}
