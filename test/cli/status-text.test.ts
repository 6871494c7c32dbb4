import { expect, test } from 'vitest'
import { describeStatus } from '../../src/cli/status.ts'
import { ago, nowMs, sink, source, status } from '../admin/views.ts'

test.each([
  ['a poll that is planned', ago(-9), /main +running +12s ago +in 9s/],
  ['a poll that never came', ago(512), /main +running +12s ago +8m 32s ago/],
  ['a poll that is due now', ago(0.4), /main +running +12s ago +now/],
])('%s is shown so', (_what, nextPollAt, line) => {
  expect(describeStatus(status({ sources: [source({ nextPollAt })] }), nowMs)).toMatch(line)
})

test('a lag of which only the least is known is shown so', () => {
  const text = describeStatus(status({ sources: [source({ lag: { p50: 8, p95: 3_600 } })] }), nowMs)
  expect(text).toMatch(/ 8s\/over 1h\n/)
})

test('the state of a sink is not known while Redis is away', () => {
  const none = { waiting: null, active: null, delayed: null, dead: null, lastResult: null }
  const text = describeStatus(status({ redis: { ok: false, error: 'gone' }, sinks: [sink(none)] }), nowMs)
  expect(text).toMatch(/trading-system +webhook +\? +\? +\? +\? +\? +-/)
})

test.each([
  [0, /main: 300 alert rules, read 1m ago\n/],
  [100, /main: the newest 300 of 400 alert rules, read 1m ago\n/],
])('%d rules that were not read are told of', (unread, line) => {
  const rules = { readAt: ago(60), count: 300, unread, silentCount: 0, silent: [] }
  expect(describeStatus(status({ sources: [source({ rules })] }), nowMs)).toMatch(line)
})

test.each([
  [1_860, null, 'putting off'],
  [1_700, null, 'active'],
  [0, ago(-600), 'putting off'],
])(
  'a sink that has put off all that it got for %d s, and asked for a pause until %s, is %s',
  (seconds, heldUntil, state) => {
    const sinks = [sink({ delayed: 4, putOffSince: ago(seconds), heldUntil })]
    expect(describeStatus(status({ sinks }), nowMs)).toMatch(
      new RegExp(`trading-system +webhook +${state} +0 `),
    )
  },
)
