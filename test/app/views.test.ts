import { expect, test } from 'vitest'
import { sinkView } from '../../src/app/operator-api/sink-view.ts'
import { deliveryRowOf, deliveryStoryOf, sourceView } from '../../src/app/operator-api/views.ts'
import type { JobView } from '../../src/delivery/records/job-view.ts'
import { pollerStatusSchema } from '../../src/store/source/source-status.ts'

const alert = {
  source: 'main',
  id: 7,
  kind: 'price',
  symbol: 'فولاد',
  headline: 'headline',
  url: 'https://market.example.com/7',
  why: null,
  ruleIds: ['12'],
  firedAt: '2026-11-21T05:30:00Z',
}
const view: JobView = {
  sink: 'hook',
  jobId: 'main.7',
  state: 'completed',
  alert,
  attempts: 1,
  changedAtMs: 0,
}

test('a row of a list shows an alert as it came', () => {
  expect(deliveryRowOf(view)).toMatchObject(alert)
})

test('a row of a list stays a row, however much upstream wrote into a field', () => {
  const long = 'متن long '.repeat(200_000)
  const fields = {
    kind: long,
    symbol: long,
    headline: long,
    why: long,
    firedAt: long,
    ruleIds: Array(90_000).fill(long),
  }
  const row = deliveryRowOf({ ...view, alert: { ...alert, ...fields, url: `https://x.example/${long}` } })
  expect(JSON.stringify(row).length).toBeLessThan(30_000)
  expect(row.headline).toMatch(/^متن long .*…$/)
  // Half an address leads elsewhere.
  expect(row.url).toBe('')
})

test('each attempt of a story has a number of its own: after those that its schedule did not count, over replays, and where the oldest were let go', () => {
  const attempt = (number: number, result: 'retry' | 'dead' | 'delivered') => ({
    ...{ number, result, atMs: 0, durationMs: 0, text: '' },
  })
  const history = [
    ...[attempt(1, 'retry'), attempt(2, 'retry'), attempt(2, 'retry'), attempt(3, 'dead')],
    ...[attempt(1, 'retry'), attempt(1, 'retry'), attempt(2, 'delivered')],
  ]
  const shown = (kept: typeof history) =>
    deliveryStoryOf({ ...view, history: kept }, []).attempts.map(({ number, round }) => [number, round])
  expect(shown(history)).toEqual([
    ...[1, 2, 3, 4].map((number) => [number, 1]),
    ...[5, 6, 7].map((number) => [number, 2]),
  ])
  expect(shown(history.slice(1))[0]).toEqual([2, 1])
})

test('the units of a budget day that is over are not those of the next, where nobody has polled since', () => {
  const dayMs = 86_400_000
  const status = pollerStatusSchema.parse({
    ...{ v: 1, source: 'main', state: 'waiting', reason: '', sinceMs: 0, behind: false, lastError: null },
    ...{ lastPollAtMs: 0, lastOkAtMs: 0, nextPollAtMs: 0, nextReason: null, lastCompleteWalkAtMs: 0 },
    ...{ unitsUsed: 1_900, unitsPerDay: 2_000, dayStartMs: 0, resetsAtMs: dayMs },
  })
  const about = { name: 'main', here: false, fault: null, lag: null, tooThin: () => [], nowMs: 0 }
  const usedOn = (startMs: number) =>
    sourceView({ ...about, status, day: { key: '', startMs, endMs: startMs + dayMs } }).budget
  expect(usedOn(0)).toMatchObject({ unitsUsed: 1_900, resetsAt: '1970-01-02T00:00:00.000Z' })
  expect(usedOn(dayMs)).toMatchObject({ unitsUsed: 0, resetsAt: '1970-01-03T00:00:00.000Z' })
})

test('why a sink is paused is what its operator wrote, and never the fault that it had before', () => {
  const counts = { waiting: 0, active: 0, delayed: 0, completed: 0, failed: 0 }
  const queue = { counts, paused: true, deliveredSince: 0, endedOfLate: 0, refusedInARow: 0 }
  const facts = {
    ...{ about: { name: 'hook', type: 'webhook', lag: null }, lane: undefined, queue },
    breaker: { open: true, ageMs: 0, sinceMs: 0, reason: 'server_error: 503' },
  }
  const shown = (comment: string) => sinkView({ ...facts, pause: { comment } } as never, 0)
  expect(shown('they migrate')).toMatchObject({ state: 'paused', reason: 'they migrate' })
  expect(shown('')).toMatchObject({ state: 'paused', reason: null })
})

test('how long a queue takes is told by the pace since its oldest alert was queued, of the last five minutes at most', () => {
  const counts = { waiting: 600, active: 0, delayed: 0, completed: 0, failed: 0 }
  const about = { name: 'hook', type: 'webhook', lag: null }
  const nowMs = 3_600_000
  const shown = (waitsMs: number | undefined, endedOfLate: number) => {
    const oldest = waitsMs === undefined ? {} : { oldestWaitingAtMs: nowMs - waitsMs }
    const queue = { counts, paused: false, deliveredSince: 0, refusedInARow: 0, endedOfLate, ...oldest }
    const { oldestWaitingAt, drainSeconds } = sinkView({ about, queue } as never, nowMs)
    return [oldestWaitingAt, drainSeconds]
  }
  // 60 in a minute, and 60 in five; 30 within the first second count as 30 a second.
  expect(shown(60_000, 60)).toEqual(['1970-01-01T00:59:00.000Z', 600])
  expect(shown(1_800_000, 60)).toEqual(['1970-01-01T00:30:00.000Z', 3_000])
  expect(shown(200, 30)).toEqual(['1970-01-01T00:59:59.800Z', 20])
  expect(shown(60_000, 0)).toEqual(['1970-01-01T00:59:00.000Z', null])
  expect(shown(undefined, 60)).toEqual([null, null])
})

test.each([
  ['is paused', { queue: { paused: true } }, null],
  ['rests, while its alerts are given up on one by one', { breaker: { open: true, ageMs: 0 } }, null],
  ['takes alerts', {}, 600],
])('how long a queue takes is only told of a sink that sends: one that %s', (_, changes, drainSeconds) => {
  const counts = { waiting: 600, active: 0, delayed: 0, completed: 0, failed: 60 }
  const nowMs = 3_600_000
  const queue = { counts, paused: false, deliveredSince: 0, refusedInARow: 0, endedOfLate: 60 }
  const waited = { ...queue, oldestWaitingAtMs: nowMs - 60_000, ...('queue' in changes ? changes.queue : {}) }
  const facts = { about: { name: 'hook', type: 'webhook', lag: null }, ...changes, queue: waited }
  expect(sinkView(facts as never, nowMs).drainSeconds).toBe(drainSeconds)
})

test('what was tried in vain counts as put off by its sink until it acknowledges something', () => {
  const counts = { waiting: 0, active: 0, delayed: 8, completed: 0, failed: 0 }
  const about = { name: 'hook', type: 'webhook', lag: null }
  const putOffSince = (times: { lastDeliveredAtMs?: number; oldestTriedAtMs?: number }) => {
    const queue = { counts, paused: false, deliveredSince: 0, refusedInARow: 0, endedOfLate: 0, ...times }
    return sinkView({ about, queue } as never, 9_000).putOffSince
  }
  expect(putOffSince({})).toBe(null)
  expect(putOffSince({ oldestTriedAtMs: 2_000 })).toBe('1970-01-01T00:00:02.000Z')
  expect(putOffSince({ oldestTriedAtMs: 2_000, lastDeliveredAtMs: 1_000 })).toBe('1970-01-01T00:00:02.000Z')
  expect(putOffSince({ oldestTriedAtMs: 2_000, lastDeliveredAtMs: 3_000 })).toBe(null)
})

test('a sink that asks for a pause of each alert is not told to have got nothing yet', () => {
  const counts = { waiting: 0, active: 0, delayed: 4, completed: 0, failed: 0 }
  const about = { name: 'hook', type: 'webhook', lag: null }
  const lastRetry = { atMs: 2_000, text: 'rate_limited: 429 quota spent' }
  const resultOf = (changes: object, lane?: object) => {
    const queue = { counts, paused: false, deliveredSince: 0, refusedInARow: 0, endedOfLate: 0, ...changes }
    return sinkView({ about, queue, lane } as never, 9_000).lastResult
  }
  expect(resultOf({})).toBe(null)
  const limited = { at: '1970-01-01T00:00:02.000Z', kind: 'retry', text: lastRetry.text }
  expect(resultOf({ lastRetry })).toEqual(limited)
  expect(resultOf({ lastRetry, lastDeliveredAtMs: 1_000 })).toEqual(limited)
  expect(resultOf({ lastRetry, lastDeliveredAtMs: 3_000 })).toMatchObject({ kind: 'delivered' })
  const fault = { atMs: 3_000, text: 'timeout: no answer' }
  expect(resultOf({ lastRetry }, { lastFault: fault })).toMatchObject({ kind: 'retry', text: fault.text })
  expect(resultOf({ lastRetry }, { lastFault: { ...fault, atMs: 1_000 } })).toEqual(limited)
})

test('a sink that failed before it was paused is not probed', () => {
  const counts = { waiting: 1, active: 0, delayed: 0, completed: 0, failed: 0 }
  const queue = { counts, deliveredSince: 0, endedOfLate: 0, refusedInARow: 0 }
  const lane = {
    sink: 'hook',
    breaker: 'open',
    openSinceMs: 0,
    heldUntilMs: 60_000,
    reason: 'server_error: 503',
  }
  const about = { name: 'hook', type: 'webhook', lag: null }
  const shown = (paused: boolean) =>
    sinkView(
      { about, lane, breaker: undefined, queue: { ...queue, paused }, pause: { comment: '' } } as never,
      0,
    )
  expect(shown(false).nextProbeAt).toBe('1970-01-01T00:01:00.000Z')
  expect(shown(true)).toMatchObject({ state: 'paused', nextProbeAt: null })
})
