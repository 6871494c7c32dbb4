import { describe, expect, it } from 'vitest'
import {
  failingMsMax,
  healthOf,
  hungMsMin,
  hungOf,
  type LoopActivity,
  lateMsMax,
} from '../../src/poller/health.ts'
import { type PollerStatus, startingStatus } from '../../src/store/source/source-status.ts'

const nowMs = 1_000_000_000
const status: PollerStatus = {
  ...startingStatus('main', 1, 0),
  state: 'waiting',
  lastPollAtMs: nowMs - 1_000,
  nextPollAtMs: nowMs + 1_000,
}

const error = (atMs: number) => ({ atMs, code: 'bad_shape', message: 'perPage is 50' })

describe('the health of a poller', () => {
  it.each<[string, Partial<PollerStatus>, Partial<LoopActivity>, boolean, RegExp?]>([
    ['is good while it waits for its next poll', {}, {}, true],
    [
      'is bad before the first poll was tried',
      { state: 'starting', lastPollAtMs: null },
      {},
      false,
      /no poll was tried/,
    ],
    ['is bad while the first poll is only planned', { lastPollAtMs: null }, {}, false, /no poll was tried/],
    ['is good on standby', { state: 'standby', lastPollAtMs: null }, {}, true],
    ['is good for hours of a spent budget', { state: 'budget_spent', lastPollAtMs: null }, {}, true],
    ['is good while the API asks to wait', { state: 'held' }, { dueAtMs: nowMs + 3 * 3_600_000 }, true],
    ['is good where a person is needed', { state: 'stopped', reason: 'no token' }, {}, true],
    [
      'is good while a feed fails for some minutes',
      { lastError: error(failingMsMax - 1), failingSinceMs: 0 },
      {},
      true,
    ],
    [
      'is bad once every poll has failed for a quarter of an hour, with an example',
      { lastError: error(failingMsMax), failingSinceMs: 0 },
      {},
      false,
      /no poll has gone well for 15m: perPage is 50/,
    ],
    [
      'is good on standby, whatever this replica saw when it polled',
      { state: 'standby', lastError: error(failingMsMax), failingSinceMs: 0 },
      {},
      true,
    ],
    [
      'is good while the token is refused, which is told otherwise',
      { state: 'polling', lastError: { ...error(failingMsMax), code: 'unauthenticated' }, failingSinceMs: 0 },
      {},
      true,
    ],
    [
      'is bad while Redis is away',
      { state: 'redis_down', reason: 'ECONNREFUSED' },
      {},
      false,
      /Redis.*ECONNREFUSED/,
    ],
    [
      'is bad when nothing happens that should',
      {},
      { dueAtMs: nowMs - lateMsMax - 1 },
      false,
      /stuck \(waiting\)/,
    ],
    [
      'is bad when a poll never ends',
      { state: 'polling' },
      { dueAtMs: nowMs - lateMsMax - 1 },
      false,
      /stuck \(polling\)/,
    ],
    [
      'is bad on a standby that hangs',
      { state: 'standby' },
      { dueAtMs: nowMs - lateMsMax - 1 },
      false,
      /stuck/,
    ],
    ['is good when something is only a little late', {}, { dueAtMs: nowMs - lateMsMax + 1 }, true],
    ['is bad after the loop itself failed', {}, { crash: 'x is undefined' }, false, /x is undefined/],
  ])('%s', (_, fields, vitals, ok, reason) => {
    const health = healthOf(
      {
        status: { ...status, ...fields },
        actedAtMs: nowMs - 90_000,
        dueAtMs: nowMs,
        crash: undefined,
        ...vitals,
      },
      nowMs,
    )
    expect(health.ok).toBe(ok)
    if (!health.ok) expect(health.reason).toMatch(reason ?? /none/)
  })
})

describe('a poller that only a new process helps', () => {
  const vitals = { actedAtMs: 0, crash: undefined }

  it.each<[PollerStatus['state'], number, boolean]>([
    ['waiting', hungMsMin, false],
    ['waiting', hungMsMin + 1, true],
    ['redis_down', hungMsMin + 1, true],
    ['budget_spent', -hungMsMin, false],
  ])('%s, and late by %d ms: %s', (state, lateMs, hung) => {
    const found = hungOf({ ...vitals, status: { ...status, state }, dueAtMs: nowMs - lateMs }, nowMs)
    expect(found !== undefined).toBe(hung)
  })
})
