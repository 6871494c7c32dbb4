import { expect, onTestFinished, test, vi } from 'vitest'
import { describeAlert } from '../../src/cli/deliveries.ts'
import { print, printJson } from '../../src/cli/output.ts'
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

/** What `work` prints, to a terminal or into a pipe. */
function printed(isTTY: boolean, work: () => void): string {
  const own = Object.getOwnPropertyDescriptor(process.stdout, 'isTTY')
  Object.defineProperty(process.stdout, 'isTTY', { value: isTTY, configurable: true })
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  onTestFinished(() => write.mockRestore())
  try {
    work()
    return write.mock.calls.join('')
  } finally {
    write.mockRestore()
    if (own) Object.defineProperty(process.stdout, 'isTTY', own)
    else Reflect.deleteProperty(process.stdout, 'isTTY')
  }
}

const [hostile, written] = ['فولاد\u2069\u202e 12\n\u2066', 'فولاد\\u2069\\u202e 12\\n\\u2066']
const attempt = {
  ...{ number: 1, at: '2026-11-21T08:45:00Z', outcome: 'dead', reason: 'http_error', status: 400 },
  ...{ text: hostile, round: 1, durationMs: 3 },
}

test('in a terminal the direction of what others wrote ends with it, and takes no width; a pipe gets none of these marks', () => {
  const story = {
    ...{
      source: 'main',
      id: 1,
      kind: 'price',
      symbol: hostile,
      headline: hostile,
      firedAt: 'then',
      seenAt: null,
    },
    ...{
      held: [],
      actions: [{ at: 'then', action: 'replay', subject: '', comment: hostile, by: 'a', from: 'b' }],
    },
    deliveries: [{ sink: 'hook', state: 'dead', reason: hostile, attempts: [attempt] }],
  }
  const works = [
    () =>
      print(
        table(
          ['A', 'B'],
          [
            [hostile, 'x'],
            ['plain', hostile],
          ],
        ),
      ),
    () => print(describeAlert(JSON.parse(JSON.stringify(story)))),
  ]
  for (const work of works) {
    const [terminal, pipe] = [printed(true, work), printed(false, work)]
    expect(pipe).not.toMatch(/[\u2066-\u2069]/)
    expect(terminal.replaceAll(/[\u2068\u2069]/g, '')).toBe(pipe)
    expect(pipe.split(written).length).toBeGreaterThan(2)
    expect(terminal.split(`\u2068${written}\u2069`)).toHaveLength(pipe.split(written).length)
  }
  // As any program would write it, and no mark of ours within.
  expect(printed(true, () => printJson({ hostile: '\u2068فولاد\u2069' }))).not.toMatch(/[\u2066-\u2069]/)
})
