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

  it(`is shown by a test of ${file}.test.ts of that name`, () => {
    expect(source()).toContain(name)
    const titles = ofRow(row, source()).map(({ title }) => title)
    // A title with a place for a parameter takes the name from its table.
    expect(titles.filter((title) => title.includes(name) || /%s|\$\w/.test(title))).not.toEqual([])
  })

  it.each(cells)('every word of "%s" stands beside an assertion', (cell) => {
    expect(unquoted(row, cell, source())).toBe('')
  })
})

/** What is left of a cell without what the row's test quotes of it. */
function unquoted(row: TableRow, cell: Cell, source: string): string {
  const quoted = ofRow(row, source).flatMap(({ text }) =>
    [...text.matchAll(/\.(kept|twice|heals)\(\s*(['"`])(.*?)\2,/g)]
      .filter(([, column]) => column === cell)
      .map(([, , , words = '']) => words),
  )
  const left = quoted.reduce((rest, words) => rest.replace(words, ''), row[cell])
  return left.replaceAll(/[\s,;:.()–]|\band\b/g, '') === '' ? '' : left.trim()
}

/** Each test that asks for the row: its title with those around it, and its text from there to the next row. */
function ofRow(row: TableRow, source: string): { title: string; text: string }[] {
  const parts = source.split(/failureRow\(\s*/)
  return parts.flatMap((text, index) => {
    if (index === 0 || !row.what.startsWith(literalAt(text))) return []
    const before = [...parts.slice(0, index).join(' ').matchAll(titles)]
    const around = before.filter(([, kind]) => kind === 'describe')
    const own = before.filter(([, kind]) => kind !== 'describe').slice(-1)
    return [{ title: [...around, ...own].map(([, , , title]) => title).join(' > '), text }]
  })
}

/** Also of what `it.each(...)` returns. */
const titles = /(?:\b(describe|it|test)(?:\.\w+)*|\))\(\s*(['"`])(.*?)\2,/g

function literalAt(part: string): string {
  return /^(['"`])(.*?)\1/.exec(part)?.[2] ?? '\0'
}

function named(test: string): { file: string; name: string } {
  const [, file = '', name = ''] = /^`([\w-]+\/[\w-]+): ([^`]+)`/.exec(test) ?? []
  return { file, name }
}
