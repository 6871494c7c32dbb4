import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { onTestFinished } from './finished.ts'

/**
 * The table of failures (test/faults/README.md), and what a test asserts of one of its rows. A test quotes the words of
 * the three cells beside the assertions that show them, so that neither can change without the other.
 */
export interface TableRow {
  readonly what: string
  readonly kept: string
  readonly twice: string
  readonly heals: string
  /** `folder/file: beginning of the test's name`. */
  readonly test: string
}

export type Cell = 'kept' | 'twice' | 'heals'

/** `shows` throws, or rejects, when the words are not so. */
interface FailureRow {
  kept(words: string, shows: () => unknown): Promise<void>
  twice(words: string, shows: () => unknown): Promise<void>
  /** With a number of milliseconds: at most the longest duration that the words name. */
  heals(words: string, shows: number | (() => unknown)): Promise<void>
  /** The same, in the long form alone: the row's last column says which. */
  readonly inLong: Pick<FailureRow, Cell>
}

const tableFile: string = join(import.meta.dirname, '../faults/README.md')
export const cells: readonly Cell[] = ['kept', 'twice', 'heals']
const long = process.env['LONG'] === '1'

export function failureTable(): TableRow[] {
  const lines = readFileSync(tableFile, 'utf8').split('\n')
  return lines
    .filter((line) => /^\| (?!\*\*|What happens|-)/.test(line))
    .map((line) => {
      const [what = '', kept = '', twice = '', heals = '', test = ''] = line.slice(2, -2).split(' | ')
      return { what, kept, twice, heals, test }
    })
}

/** The row whose first cell begins with `what`; the test that asks for it fails unless it asserts all three cells. */
export function failureRow(what: string): FailureRow {
  const found = failureTable().filter((row) => row.what.startsWith(what))
  const [row] = found
  if (row === undefined || found.length > 1)
    throw new Error(`${found.length} rows of the table of failures begin with "${what}"`)
  const asserted = new Set<Cell>()
  onTestFinished(({ task }) => {
    if (task.result?.state === 'fail') return
    const missing = cells.filter((cell) => !asserted.has(cell))
    if (missing.length > 0) throw new Error(`the test asserts nothing of ${missing.join(', ')}: "${what}"`)
  })
  const columnOf =
    (runs: boolean) => (cell: Cell) => async (words: string, shows: number | (() => unknown)) => {
      if (!row[cell].includes(words)) throw new Error(`"${words}" does not stand in "${row[cell]}"`)
      asserted.add(cell)
      if (!runs) return
      if (typeof shows === 'number') expect(shows, words).toBeLessThanOrEqual(longestMs(words))
      else await shows()
    }
  const columns = (runs: boolean) => {
    const column = columnOf(runs)
    return { kept: column('kept'), twice: column('twice'), heals: column('heals') }
  }
  return { ...columns(true), inLong: columns(long) }
}

/** The longest duration in words like "15–25 s" or "5 min". */
export function longestMs(words: string): number {
  const named = [...words.matchAll(/(\d+) ?(ms|s|min|m|h)\b/g)].map(
    ([, count, unit = '']) => Number(count) * (unitMs[unit] ?? Number.NaN),
  )
  if (named.length === 0) throw new Error(`no duration in "${words}"`)
  return Math.max(...named)
}

const unitMs: Record<string, number> = { ms: 1, s: 1_000, min: 60_000, m: 60_000, h: 3_600_000 }
