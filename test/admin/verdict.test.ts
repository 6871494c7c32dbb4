import { expect, test } from 'vitest'
import { troublesOf, verdictOf } from '../../src/admin/verdict.ts'
import type { SinkView, StatusFacts } from '../../src/admin/views/status-view.ts'
import type { PollerFault } from '../../src/poller/settings.ts'
import { ago, nowMs, orphan, otherPoller, sink, source, status } from './views.ts'

const faultOf = (why: PollerFault) => ({ why, reason: why })
const verdict = (changes: Partial<StatusFacts>) => verdictOf(status(changes), nowMs)

const thin = {
  ...{ unitsUsed: 0, spentFor: [], unitsPerDay: 5, note: null },
  ...{ startedAt: ago(3_600), resetsAt: ago(-82_800) },
}

test('all well is one sentence and nothing to look at', () => {
  expect(verdict({})).toEqual({
    ready: true,
    level: 'ok',
    headline: 'Alerts are being delivered',
    findings: [],
  })
})

test.each<[string, Partial<StatusFacts>, 'ok' | 'warning' | 'failed', string | undefined]>([
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
  [
    'rows that could not be read',
    { quarantined: 3 },
    'warning',
    '3 rows of the feed could not be read and are quarantined (alert-bridge quarantine lists, retries and drops)',
  ],
  ['draining', { draining: true }, 'warning', 'The bridge is draining'],
  [
    'a Redis that may lose alerts',
    { redis: { ok: true, trouble: 'maxmemory-policy is allkeys-lru' } },
    'failed',
    'maxmemory-policy',
  ],
  ['counts that Redis did not tell', { unrouted: null }, 'warning', 'could not be counted'],
  ['what is left of others, which Redis did not tell', { orphans: null }, 'warning', 'could not be counted'],
  ['dead letters, which Redis did not tell', { sinks: [sink({ dead: null })] }, 'warning', 'counted'],
  ['no poll yet', { sources: [source({ fault: faultOf('starting') })] }, 'warning', 'Source main: starting'],
  [
    'a loop that is stuck',
    { sources: [source({ fault: faultOf('stuck') })] },
    'failed',
    'Source main: stuck',
  ],
  [
    'a feed that fails for good',
    { sources: [source({ state: 'failing', fault: faultOf('failing') })] },
    'failed',
    'Source main fails at every poll: failing',
  ],
  [
    'the same where another process polls',
    { sources: [source({ state: 'failing', reason: 'login page' })] },
    'failed',
    'fails at every poll: login page',
  ],
  ['full queues', { sources: [source({ state: 'queues_full', reason: 'full' })] }, 'warning', 'waits: full'],
  [
    'a sink that is stuck',
    { sinks: [sink({ state: 'stuck', reason: '2 wait' })] },
    'failed',
    'stuck: 2 wait',
  ],
  [
    'source stopped',
    { sources: [source({ state: 'stopped', reason: 'bad token' })] },
    'failed',
    'main is stopped: bad token',
  ],
  ['budget spent', { sources: [source({ state: 'budget_spent' })] }, 'warning', 'has spent the budget'],
  ['call failed', { sources: [source({ state: 'retrying', reason: '502' })] }, 'warning', 'tries again: 502'],
  ['catching up', { sources: [source({ state: 'catching_up' })] }, 'warning', 'catching up'],
  [
    'a page that fails',
    { sources: [source({ state: 'catching_up', reason: '502' })] },
    'warning',
    'main is behind, and a page beneath the first fails: 502',
  ],
  ['starting', { sources: [source({ state: 'starting', nextPollAt: null })] }, 'ok', undefined],
  ['standby', { sources: [source({ state: 'standby', nextPollAt: ago(900) })] }, 'ok', undefined],
  [
    'a poll that is a little late',
    { sources: [source({ here: false, overdueSeconds: 0 })] },
    'ok',
    undefined,
  ],
  [
    'a poll that never came',
    { sources: [source({ here: false, overdueSeconds: 180 })] },
    'failed',
    'should have polled 3m ago',
  ],
  [
    'a poller that ended before the reset it waits for',
    { sources: [source({ here: false, state: 'budget_spent', overdueSeconds: 3 * 86_400 })] },
    'failed',
    'should have polled 3d ago',
  ],
  [
    'a poller that ended before it tried again',
    { sources: [source({ here: false, state: 'retrying', overdueSeconds: 180 })] },
    'failed',
    'should have polled 3m ago',
  ],
  [
    'a poller that ended while the queues were full',
    { sources: [source({ here: false, state: 'queues_full', reason: 'full', overdueSeconds: 180 })] },
    'failed',
    'should have polled 3m ago',
  ],
  [
    'a long catch-up elsewhere',
    { sources: [source({ here: false, state: 'catching_up', overdueSeconds: 0 })] },
    'warning',
    'is behind and catching up',
  ],
  [
    'a catch-up that its process left',
    { sources: [source({ here: false, state: 'catching_up', overdueSeconds: 7_200 })] },
    'failed',
    'should have polled 2h ago',
  ],
  [
    'a process that only sends, where none polls',
    { role: 'sender', sources: [source({ here: false, state: 'starting', nextPollAt: null })] },
    'warning',
    'Source main was polled by no process yet',
  ],
  [
    'breaker open',
    { sinks: [sink({ state: 'open', waiting: 8, delayed: 2 })] },
    'failed',
    'given a rest; 10 wait',
  ],
  ['paused', { sinks: [sink({ state: 'paused', waiting: 1 })] }, 'warning', 'is paused; 1 waits'],
  ['dead letters', { sinks: [sink({ dead: 1 })] }, 'warning', 'has 1 dead letter'],
  [
    'a queue that takes hours at its pace',
    { sinks: [sink({ waiting: 8_929, oldestWaitingAt: ago(300), drainSeconds: 8_929 })] },
    'failed',
    'is too slow: 8,929 wait, the oldest for 5m; at this pace for 2h 28m more',
  ],
  [
    'a queue of which nothing goes out',
    { sinks: [sink({ waiting: 3, oldestWaitingAt: ago(180) })] },
    'warning',
    '3 wait, the oldest for 3m; nothing was sent meanwhile',
  ],
  [
    'a queue that waits because its sink asked for a pause',
    { sinks: [sink({ waiting: 3, oldestWaitingAt: ago(180), drainSeconds: 600, heldUntil: ago(-600) })] },
    'warning',
    `3 wait, the oldest for 3m; the sink asked for a pause until ${ago(-600)}`,
  ],
  [
    'a retry whose time has come among few others',
    { sinks: [sink({ waiting: 2, oldestWaitingAt: ago(7_200), drainSeconds: 1 })] },
    'ok',
    undefined,
  ],
  [
    'a long queue that was filled a moment ago',
    { sinks: [sink({ waiting: 5_000, oldestWaitingAt: ago(2), drainSeconds: 900 })] },
    'ok',
    undefined,
  ],
  [
    'a sink that has put off all that it got for half an hour',
    { sinks: [sink({ delayed: 8, putOffSince: ago(1_860) })] },
    'warning',
    'puts everything off: 8 wait for another attempt, one of them for 31m, and nothing was acknowledged meanwhile',
  ],
  [
    'one that has done so for less',
    { sinks: [sink({ delayed: 8, putOffSince: ago(1_700) })] },
    'ok',
    undefined,
  ],
  [
    'a queue that waits because its sink is paused',
    { sinks: [sink({ state: 'paused', waiting: 9, oldestWaitingAt: ago(900) })] },
    'warning',
    'is paused; 9 wait',
  ],
  [
    'a sink that refuses everything',
    {
      sinks: [
        sink({ dead: 12, refusedInARow: 12, lastResult: { at: ago(5), kind: 'dead', text: 'HTTP 403: no' } }),
      ],
    },
    'failed',
    'refuses everything: the last 12 alerts were given up on (HTTP 403: no)',
  ],
  [
    'one alert that was refused',
    { sinks: [sink({ dead: 1, refusedInARow: 1 })] },
    'warning',
    '1 dead letter',
  ],
  [
    'a reload that was refused',
    { refusedReload: { at: ago(60), mistakes: ['config:3: sinks.x: unknown', 'config:4: b'] } },
    'warning',
    'reload was refused, the config before it goes on: config:3: sinks.x: unknown and 1 more',
  ],
  [
    'another config on the same Redis',
    { processes: [otherPoller] },
    'warning',
    'Another config is in force beside the one of this process: web-2, process 9 (poller)',
  ],
  [
    'a budget too thin for its plan',
    { sources: [source({ budget: { ...thin, tooThin: ['5 units a day are one poll in 4h 48m'] } })] },
    'warning',
    'Source main has too few units: 5 units a day are one poll in 4h 48m',
  ],
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
  expect(headline).toBe('Ready, but 2 things are broken')
  expect(findings.map(({ level, href }) => [level, href])).toEqual([
    ['failed', '#source-second'],
    ['failed', '#sink-trading-system'],
    ['warning', '#source-main'],
    ['warning', '?sink=trading-system&state=dead#deliveries'],
  ])
})

test('what operators get notices of has a name of its own with its finding', () => {
  const budget = { ...thin, tooThin: ['few'] }
  const facts = {
    ...{ sources: [source({ budget })], processes: [otherPoller] },
    refusedReload: { at: ago(60), mistakes: ['config:3: sinks.x: unknown'] },
  }
  const slow = sink({ waiting: 3, oldestWaitingAt: ago(180) })
  const named = [slow, sink({ dead: 12, refusedInARow: 12 })].flatMap((each) =>
    verdict({ ...facts, sinks: [each] }).findings.flatMap(({ trouble }) => trouble ?? []),
  )
  const all = troublesOf(status({ ...facts, sinks: [slow] }))
  expect([...new Set(named)].sort()).toEqual(all.toSorted())
})

test.each<[string, Partial<SinkView>, string[]]>([
  ['a sink that takes alerts', {}, ['late', 'refuses']],
  // Who is told that a sink is slow may pause it: then nobody knows whether it would be fast enough.
  ['a paused sink', { state: 'paused' }, []],
  ['a sink that rests', { state: 'open' }, []],
  ['a sink whose queue could not be counted', { waiting: null, refusedInARow: null }, []],
  ['a sink that refuses everything', { dead: 12, refusedInARow: 12 }, ['refuses']],
])('of %s no trouble may be called over that it cannot show', (_what, changes, expected) => {
  const troubles = troublesOf(status({ sources: [], sinks: [sink(changes)] }))
  expect(troubles.filter((each) => each.endsWith(':trading-system'))).toEqual(
    expected.map((each) => `${each}:trading-system`),
  )
})

test('nor may one of what Redis did not return in time', () => {
  const known = troublesOf(status({ sources: [source()], sinks: [] }))
  const unknown = troublesOf(status({ sources: [source({ budget: null })], sinks: [], processes: [] }))
  expect([known, unknown]).toEqual([['configs', 'reload', 'thin:main'], ['reload']])
})

test('each finding leads to what it is about', () => {
  const about = (changes: Partial<StatusFacts>) => verdict(changes).findings.map(({ href }) => href)
  expect(about({ redis: { ok: false } })).toEqual(['#top'])
  expect(about({ quarantined: 3 })).toEqual(['#sources'])
  expect(about({ orphans: [orphan] })).toEqual(['#sinks'])
  expect(about({ sources: [source({ state: 'catching_up' })] })).toEqual(['#source-main'])
  expect(about({ sources: [source({ budget: { ...thin, tooThin: ['few'] } })] })).toEqual(['#source-main'])
  const rules = { readAt: ago(9), count: 2, unread: 0, silentCount: 1, silent: [] }
  expect(about({ sources: [source({ rules })] })).toEqual(['#source-main'])
  expect(about({ sinks: [sink({ state: 'paused' })] })).toEqual(['#sink-trading-system'])
  expect(about({ sinks: [sink({ waiting: 3, oldestWaitingAt: ago(180) })] })).toEqual([
    '#sink-trading-system',
  ])
  for (const changes of [{ dead: 1 }, { dead: 12, refusedInARow: 12 }])
    expect(about({ sinks: [sink(changes)] })).toEqual(['?sink=trading-system&state=dead#deliveries'])
})

test('without Redis, that alone is told: that polls wait follows from it', () => {
  const { headline, findings } = verdict({
    redis: { ok: false },
    sources: [source({ state: 'retrying', fault: faultOf('redis_down') })],
  })
  expect(headline).toBe('Not ready: something is broken')
  expect(findings).toHaveLength(1)
})

test('of its own loop a process says that it is stuck, and not that a poll is late', () => {
  expect(verdict({ sources: [source({ here: true, overdueSeconds: 900 })] }).findings).toEqual([])
})

test.each<[string, boolean, Partial<StatusFacts>]>([
  ['that starts', false, { sources: [source({ fault: faultOf('starting') })] }],
  ['that drains', false, { draining: true }],
  ['without Redis', false, { redis: { ok: false } }],
  ['whose loop is stuck', false, { sources: [source({ fault: faultOf('stuck') })] }],
  [
    'whose feed fails for good',
    false,
    { sources: [source({ state: 'failing', fault: faultOf('failing') })] },
  ],
  ['with a stuck sink', false, { sinks: [sink({ state: 'stuck' })] }],
  ['whose token is refused', true, { sources: [source({ state: 'stopped' }), source({ name: 'b' })] }],
  ['whose budget is spent', true, { sources: [source({ state: 'budget_spent' })] }],
  ['whose receiver is down', true, { sinks: [sink({ state: 'open', dead: 9 })] }],
  ['beside one whose feed fails', true, { sources: [source({ state: 'failing', here: false })] }],
])('a bridge %s: ready is %s', (_what, ready, changes) => {
  const { ready: found, headline } = verdict(changes)
  expect(found).toBe(ready)
  expect(headline).toMatch(ready ? /^Ready, / : /^Not ready/)
})
