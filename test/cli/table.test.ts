import { expect, onTestFinished, test, vi } from 'vitest'
import { describeAlert } from '../../src/cli/deliveries.ts'
import { print, printJson, sentence } from '../../src/cli/output/output.ts'
import { table } from '../../src/cli/output/table.ts'
import { describeStatus } from '../../src/cli/status.ts'
import { nowMs, sink, source, status } from '../admin/views.ts'

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

test('an order that changed nothing is not told as one that did', () => {
  const action = { at: 'then', action: 'send again', subject: 'hook', comment: '', by: 'a', from: 'b' }
  const actions = [{ ...action, count: 0 }, { ...action, count: 1 }, action]
  const story = { source: 'main', id: 1, kind: 'price', headline: 'h', firedAt: 'then', seenAt: null }
  const text = describeAlert(JSON.parse(JSON.stringify({ ...story, deliveries: [], held: [], actions })))
  expect(text.split('\n').slice(-3)).toEqual([
    '  then send again hook, which changed nothing (a, from b)',
    '  then send again hook (a, from b)',
    '  then send again hook (a, from b)',
  ])
})

test('in a terminal a sentence keeps its brackets and numbers behind the words of others', () => {
  const shown = (text: string, words?: string) => printed(true, () => print(sentence(text, words)))
  expect(shown('failing (503 خراب است 4); 81 wait', '503 خراب است 4')).toBe(
    'failing (\u2068503 خراب است 4\u2069); 81 wait\n',
  )
  expect(shown('kind ارز, 12; symbol قیمت ۵ و 6 من')).toBe(
    'kind \u2068ارز\u2069, 12; symbol \u2068قیمت ۵ و 6 من\u2069\n',
  )
  expect(shown('ارز\u202e\n\u2068')).toBe('\u2068ارز\u2069\\u202e\\n\\u2068\n')
  expect(printed(false, () => print(sentence('a (ارز), 5', 'ارز')))).toBe('a (ارز), 5\n')

  const reason = 'server_error: 503 بعدا دوباره 4'
  const view = status({
    sources: [source({ notes: ['asks for kind ارز, 5'] })],
    sinks: [sink({ state: 'open', reason, waiting: 81, delayed: 0 })],
  })
  const lines = printed(true, () => print(describeStatus(view, nowMs)))
  expect(lines).toContain(` (\u2068${reason}\u2069); 81 wait\n`)
  expect(lines).toContain('asks for kind \u2068ارز\u2069, 5\n')
})
