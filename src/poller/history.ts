import { firedAtOf } from '../walk/scope.ts'
import type { ReadPage } from './settings.ts'

/**
 * Pages of the past, bought once: on a cold start the plan knows nothing of when alerts fire, and what the feed still
 * shows teaches it from the first day. Nothing of these pages is sent or marked; the walk does not notice them.
 */
export interface History {
  readonly pages: number
  /** Firing times, in milliseconds since the epoch, in no order. */
  readonly firedAtMs: readonly number[]
}

export interface Allowance {
  /** The pages to here were read by the poll itself. */
  readonly afterPage: number
  readonly pagesMax: number
}

/** What may be bought now, if anything: never more than a tenth of what the day has left. Pure. */
export function historyPages(situation: {
  readonly wanted: number
  readonly unitsLeft: number
  readonly memory: 'restored' | 'fresh' | 'lost'
  readonly historyRead: boolean
  readonly lastPages: number | null
  readonly behind: boolean
}): Allowance | undefined {
  const { wanted, unitsLeft, memory, historyRead, lastPages, behind } = situation
  if (historyRead || memory === 'restored' || lastPages === null || behind) return undefined
  const pagesMax = Math.min(wanted, Math.floor(unitsLeft / 10))
  return pagesMax > 0 ? { afterPage: lastPages, pagesMax } : undefined
}

/** Reads on until the feed or the allowance ends, or a page is refused or fails. */
export async function readHistory(readPage: ReadPage, allowance: Allowance, nowMs: number): Promise<History> {
  const firedAtMs: number[] = []
  let pages = 0
  while (pages < allowance.pagesMax) {
    const answer = await readPage(allowance.afterPage + pages + 1, 'history')
    if (answer.kind !== 'page') break
    pages += 1
    const { page, lastPage, rows } = answer.page
    for (const row of rows) {
      const atMs = firedAtOf(row, nowMs)
      if (atMs !== null) firedAtMs.push(atMs)
    }
    if (rows.length === 0 || page >= lastPage) break
  }
  return { pages, firedAtMs }
}
