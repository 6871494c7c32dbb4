import { expect, test } from 'vitest'
import { verdictOf } from '../../../src/admin/page/verdict.ts'
import type { StatusView } from '../../../src/admin/status-view.ts'
import { ago, nowMs, orphan, sink, source, status } from '../scene.ts'

const verdict = (changes: Partial<StatusView>) => verdictOf(status(changes), nowMs)

test('all well is one sentence and nothing to look at', () => {
  expect(verdict({})).toEqual({ level: 'ok', headline: 'Alerts are being delivered', findings: [] })
})

test.each<[string, Partial<StatusView>, 'ok' | 'warning' | 'failed', string | undefined]>([
  [
    'Redis away',
    { redis: { ok: false, error: 'ECONNREFUSED' } },
    'failed',
    'Redis does not answer (ECONNREFUSED)',
  ],
  [
    'alerts left of a sink that is gone',
    { orphans: [orphan] },
    'warning',
    'Sink old-slack is not in the config, and 260 alerts and 3 dead letters of it are left',
  ],
  ['not ready', { ready: { ok: false, reason: 'draining' } }, 'warning', 'Not ready: draining'],
  [
    'source stopped',
    { sources: [source({ state: 'stopped', reason: 'bad token' })] },
    'failed',
    'main is stopped: bad token',
  ],
  ['budget spent', { sources: [source({ state: 'budget_spent' })] }, 'warning', 'has spent the budget'],
  ['call failed', { sources: [source({ state: 'retrying', reason: '502' })] }, 'warning', 'tries again: 502'],
  ['catching up', { sources: [source({ state: 'catching_up' })] }, 'warning', 'catching up'],
  ['starting', { sources: [source({ state: 'starting', nextPollAt: null })] }, 'ok', undefined],
  ['standby', { sources: [source({ state: 'standby', nextPollAt: ago(900) })] }, 'ok', undefined],
  ['a poll that is a little late', { sources: [source({ nextPollAt: ago(59) })] }, 'ok', undefined],
  [
    'a poll that never came',
    { sources: [source({ nextPollAt: ago(180) })] },
    'failed',
    'should have polled 3m ago',
  ],
  [
    'breaker open',
    { sinks: [sink({ state: 'open', waiting: 8, delayed: 2 })] },
    'failed',
    'given a rest; 10 wait',
  ],
  ['paused', { sinks: [sink({ state: 'paused', waiting: 1 })] }, 'warning', 'is paused; 1 wait'],
  ['dead letters', { sinks: [sink({ dead: 1 })] }, 'warning', 'has 1 dead letter'],
  ['jobs on their way', { sinks: [sink({ waiting: 500, delayed: 3 })] }, 'ok', undefined],
])('%s', (_what, changes, level, sentence) => {
  const { level: found, findings } = verdict(changes)
  expect(found).toBe(level)
  expect(findings.map(({ text }) => text).join('\n')).toContain(sentence ?? '')
  expect(findings).toHaveLength(sentence === undefined ? 0 : 1)
})

test('the worst comes first, and the headline counts it', () => {
  const { headline, findings } = verdict({
    sources: [source({ state: 'retrying' }), source({ name: 'second', state: 'stopped' })],
    sinks: [sink({ state: 'open', dead: 4 })],
  })
  expect(headline).toBe('2 things are broken')
  expect(findings.map(({ level, anchor }) => [level, anchor])).toEqual([
    ['failed', 'source-second'],
    ['failed', 'sink-trading-system'],
    ['warning', 'source-main'],
    ['warning', 'sink-trading-system'],
  ])
})

test('without Redis, that alone is told: being not ready follows from it', () => {
  const { headline, findings } = verdict({ redis: { ok: false }, ready: { ok: false, reason: 'Redis' } })
  expect(headline).toBe('Something is broken')
  expect(findings).toHaveLength(1)
})
