import { describe, expect, it } from 'vitest'
import { decideNextPoll, failureDelayMs, type NextPollInput } from '../../src/poller/next-poll.ts'
import { resetGuardMs } from '../../src/store/ledger.ts'

const nowMs = Date.UTC(2026, 10, 21, 12)
const hourMs = 3_600_000
const day = { key: '2026-11-21', startMs: nowMs - 12 * hourMs, endMs: nowMs + 12 * hourMs }
const usual: NextPollInput = {
  nowMs,
  decision: { atMs: nowMs + 30_000, reason: 'expected' },
  day,
  unitsLeft: 1_000,
  minIntervalMs: 2_000,
  maxIntervalMs: 900_000,
  lastStartMs: nowMs - 10_000,
  lastReason: 'caught_up',
  hold: undefined,
  refusedUntilMs: undefined,
  failures: 0,
  walkFailures: 0,
  behind: false,
  stopped: undefined,
  pollRequested: false,
}

describe('the pace', () => {
  it.each<[string, Partial<NextPollInput>, { inMs: number; state?: string; nextReason?: string }]>([
    ['is what the schedule says', {}, { inMs: 30_000, nextReason: 'expected' }],
    [
      'keeps the shortest interval',
      { decision: { atMs: 0, reason: 'burst' }, lastStartMs: nowMs },
      { inMs: 2_000 },
    ],
    [
      'polls at once on the first day',
      { decision: { atMs: nowMs, reason: 'first' }, lastStartMs: null },
      { inMs: 0 },
    ],
    [
      'asks soon for a page beneath the first that failed',
      { behind: true, lastReason: 'failed', walkFailures: 1, lastStartMs: nowMs },
      { inMs: 2_000, nextReason: 'retry' },
    ],
    [
      'leaves one that failed again and again to the schedule',
      { behind: true, lastReason: 'failed', walkFailures: 4, lastStartMs: nowMs },
      { inMs: 30_000, nextReason: 'expected' },
    ],
    [
      'waits no longer than the longest interval, whatever the schedule says',
      { decision: { atMs: nowMs + 24 * hourMs, reason: 'floor' } },
      { inMs: 890_000 },
    ],
    [
      'may wait longer than that where units are few',
      { decision: { atMs: nowMs + 2 * hourMs, reason: 'even' }, unitsLeft: 6 },
      { inMs: 2 * hourMs },
    ],
    [
      'polls at once when the clock was set back a day, whatever was remembered in its time',
      {
        lastStartMs: nowMs + 24 * hourMs,
        decision: { atMs: nowMs + 24 * hourMs, reason: 'even' },
        refusedUntilMs: nowMs + 25 * hourMs,
        stopped: { reason: 'no', retryAtMs: nowMs + 25 * hourMs },
      },
      { inMs: 0 },
    ],
    [
      'sleeps until the day has surely begun when its units are spent',
      { unitsLeft: 0, decision: { atMs: day.endMs, reason: 'budget_spent' } },
      { inMs: 12 * hourMs + resetGuardMs, state: 'budget_spent' },
    ],
    [
      'is as fast as allowed while pages wait',
      { behind: true, lastReason: 'page_limit', lastStartMs: nowMs - 1_000 },
      { inMs: 1_000, nextReason: 'catch_up' },
    ],
    [
      'goes on catching up when the minute has room again',
      { behind: true, lastReason: 'refused_minute', refusedUntilMs: nowMs + 7_000 },
      { inMs: 7_000, nextReason: 'catch_up' },
    ],
    [
      'does not hurry after a walk that lost its place',
      { behind: true, lastReason: 'place_lost' },
      { inMs: 30_000 },
    ],
    [
      'does not hurry into a feed that fails',
      { behind: true, lastReason: 'page_limit', failures: 1 },
      { inMs: 30_000 },
    ],
    [
      'gets slower when calls go on failing',
      { failures: 5, decision: { atMs: nowMs, reason: 'ceiling' }, lastStartMs: nowMs },
      { inMs: 8_000 },
    ],
    [
      'waits exactly as a 429 says, or longer',
      { hold: { limit: 'minute', untilMs: nowMs + 7_000 }, decision: { atMs: nowMs, reason: 'burst' } },
      { inMs: 7_000, state: 'held' },
    ],
    [
      'keeps to a later plan beyond a 429',
      { hold: { limit: 'minute', untilMs: nowMs + 7_000 } },
      { inMs: 30_000, state: 'held' },
    ],
    [
      'is over with a 429 that has passed',
      { hold: { limit: 'minute', untilMs: nowMs } },
      { inMs: 30_000, state: 'waiting' },
    ],
    [
      'is slow while a person is needed',
      { stopped: { reason: 'no token', retryAtMs: nowMs + 300_000 } },
      { inMs: 300_000, state: 'stopped' },
    ],
    [
      'is at once when a person asks, also where one was needed and calls had failed',
      { pollRequested: true, failures: 20, stopped: { reason: 'no token', retryAtMs: nowMs + 300_000 } },
      { inMs: 0, state: 'waiting', nextReason: 'hot' },
    ],
    [
      'does not let a person overrun a 429',
      { pollRequested: true, hold: { limit: 'budget', untilMs: nowMs + 7_000 } },
      { inMs: 7_000, state: 'held' },
    ],
  ])('%s', (_, situation, { inMs, ...rest }) => {
    const pace = decideNextPoll({ ...usual, ...situation })
    expect({ ...pace, inMs: Math.max(0, pace.atMs - nowMs) }).toMatchObject({ inMs, ...rest })
  })

  it('after failures is the schedule first, then ever slower, up to a minute', () => {
    expect([0, 1, 3, 4, 5, 6, 7, 8, 9, 100].map(failureDelayMs)).toEqual([
      0, 0, 0, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000,
    ])
  })
})
