import { expect, test } from 'vitest'
import { table } from '../../src/cli/table.ts'

test('columns are as wide as their widest cell, whatever takes no width', () => {
  expect(
    table(
      ['A', 'B'],
      [
        ['می\u200cشود', 'x'],
        ['a', '\u001b[2J'],
      ],
    ),
  ).toBe(['A      B', 'می\u200cشود  x', 'a      \\u001b[2J'].join('\n'))
})

test('a cell of megabytes makes no line of megabytes', () => {
  const lines = table(
    ['A', 'B'],
    [
      ['x'.repeat(1_000_000), 'end'],
      ['short', 'end'],
    ],
  ).split('\n')
  for (const line of lines) expect(line.length).toBeLessThan(400)
  expect(lines[1]).toMatch(/^x+… {2}end$/)
})
