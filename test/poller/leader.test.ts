import { expect, it } from 'vitest'
import { FeedError } from '../../src/feed/errors.ts'
import type { PollResult } from '../../src/intake/poll-types.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { applyResult, keepForHead, newLeader } from '../../src/poller/leader.ts'
import type { Lease } from '../../src/store/source/lease.ts'
import { startingStatus } from '../../src/store/source/source-status.ts'
import { steadySchedule } from '../support/poller.ts'

it("rows that wait for a new day's units are tried once more where its first poll was refused, and then as the plan polls", () => {
  const leader = newLeader({} as Lease, steadySchedule(), startingStatus('main', 10, 0))
  const poll = (startMs: number, feedError?: FeedError) => {
    const result = {
      ok: feedError === undefined,
      fired: [],
      pages: 0,
      reason: 'failed',
    } as Partial<PollResult>
    const tally = { calls: 1, feedError } as Parameters<typeof applyResult>[1]['tally']
    const done = { result: result as PollResult, tally, startMs, endMs: startMs }
    applyResult(leader, done, {
      clock: systemClock,
      limits: { stoppedIntervalMs: 1 },
      freshPauseMs: () => 0,
    })
    return leader.lastShownMs
  }
  const refused = () => new FeedError('rate_limited', 'no units', { limit: 'budget', retryAfterMs: 60_000 })
  expect(poll(100)).toBe(100)
  expect([poll(200, refused()), poll(300, refused()), poll(400, refused())]).toEqual([100, 300, 400])
  // As on every day after one that was read.
  expect([poll(500), poll(600, refused())]).toEqual([500, 500])
})

it.each([
  [1, 1, 1, 0],
  [2, 2, 1, 0],
  [3, 3, 1, 1],
  [2_000, 2_000, 1, 1_000],
  [2_000, 2, 1, 0],
  [4, 4, 2, 0],
  [5, 5, 2, 2],
  [40, 40, 20, 18],
])(
  'of %i units, with %i left, a catch-up of one of %i sources leaves %i: the first pages cost one each, too',
  (unitsPerDay, left, sources, kept) => {
    const leader = newLeader({} as Lease, steadySchedule(), startingStatus('main', unitsPerDay, 0))
    const day = { key: 'd', startMs: 0, endMs: 86_400_000 }
    const ledgerUsed = unitsPerDay - left
    keepForHead(
      leader,
      { shown: { unitsPerDay, unitsLeft: left, day }, ledgerUsed },
      {
        limits: { unitsPerDay, minIntervalMs: 1 },
        share: (units) => Math.ceil(units / sources),
        backlogShare: (units) => units,
        budgetDay: () => day,
        nowMs: 1,
        behind: true,
      },
    )
    expect(leader.keptForHead.units).toBe(kept)
  },
)
