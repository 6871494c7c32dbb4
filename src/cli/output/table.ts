import { cut } from '../../alert/text/text.ts'
import { printable } from '../../telemetry/printable.ts'
import { isolated } from './output.ts'

/** Longer cells are cut: a column is as wide as its widest cell. */
const cellCharsMax = 300

/** Rows as aligned columns. Cells may be text from outside: they are made printable here. */
export function table(headings: readonly string[], cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map((cell) => isolated(cut(printable(cell), cellCharsMax))))
  const widths = headings.map((heading, column) =>
    Math.max(width(heading), ...rows.map((row) => width(row[column] ?? ''))),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - width(cell))))
      .join('  ')
      .trimEnd()
  return [headings, ...rows].map(line).join('\n')
}

/** How many columns the text takes in a terminal: marks and format characters (ZWNJ, bidi marks) take none. */
function width(text: string): number {
  return [...text].filter((character) => !/[\p{Mn}\p{Me}\p{Cf}]/u.test(character)).length
}
