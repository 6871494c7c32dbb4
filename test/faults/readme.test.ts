import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Cell, cells, failureTable, type TableRow } from '../support/failure-row.ts'

/** The table of failures promises a test for every row: this looks whether it is there, and what it asserts of the row. */
const rows = failureTable()

it('the table has rows, and every row names a test', () => {
  expect(rows.length).toBeGreaterThan(40)
  expect(rows.filter(({ test }) => named(test).name === '')).toEqual([])
})

describe.each(rows)('$what', (row) => {
  const { file, name } = named(row.test)
  const source = () =>
    readFileSync(join(import.meta.dirname, `../${file}.test.ts`), 'utf8').replaceAll(/\s+/g, ' ')

  it(`is shown by a test of ${file}.test.ts`, () => {
    expect(source()).toContain(name)
  })

  it.each(cells)('every word of "%s" stands beside an assertion', (cell) => {
    expect(unquoted(row, cell, source())).toBe('')
  })
})

/** What is left of a cell without what the row's test quotes of it. */
function unquoted(row: TableRow, cell: Cell, source: string): string {
  const parts = source.split(/failureRow\(\s*/).slice(1)
  const own = parts.filter((part) => row.what.startsWith(literalAt(part)))
  const quoted = own.flatMap((part) =>
    [...part.matchAll(/\.(kept|twice|heals)\(\s*(['"`])(.*?)\2,/g)]
      .filter(([, column]) => column === cell)
      .map(([, , , words = '']) => words),
  )
  const left = quoted.reduce((rest, words) => rest.replace(words, ''), row[cell])
  return left.replaceAll(/[\s,;:.()–]|\band\b/g, '') === '' ? '' : left.trim()
}

function literalAt(part: string): string {
  return /^(['"`])(.*?)\1/.exec(part)?.[2] ?? '\0'
}

function named(test: string): { file: string; name: string } {
  const [, file = '', name = ''] = /^`([\w-]+\/[\w-]+): ([^`]+)`/.exec(test) ?? []
  return { file, name }
}
