import { describe, expect, it } from 'vitest'
import { decideNextPoll, type NextPollInput } from '../../src/poller/next-poll.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { resetGuardMs } from '../../src/store/ledger/ledger-days.ts'
import { benchOptions } from '../bench/compare.ts'
import { createTrace } from '../bench/traces.ts'

const nowMs = Date.UTC(2026, 10, 21, 12)
const hourMs = 3_600_000
const day = { key: '2026-11-21', startMs: nowMs - 12 * hourMs, endMs: nowMs + 12 * hourMs }
const usual: NextPollInput = {
  nowMs,
  decision: { atMs: nowMs + 30_000, reason: 'expected' },
  day,
  unitsLeft: 1_000,
  unitsPerDay: 2_000,
  minIntervalMs: 2_000,
  lastStartMs: nowMs - 10_000,
  lastShownMs: nowMs - 10_000,
  hold: undefined,
  refusedUntilMs: undefined,
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
      'polls at once when the clock was set back a day, whatever was remembered in its time',
      {
        lastStartMs: nowMs + 24 * hourMs,
        decision: { atMs: nowMs + 24 * hourMs, reason: 'even' },
        refusedUntilMs: nowMs + 25 * hourMs,
        stopped: { reason: 'no', retryAtMs: nowMs + 25 * hourMs, byPlan: true },
      },
      { inMs: 0 },
    ],
    [
      'sleeps until the day has surely begun when its units are spent',
      { unitsLeft: 0, decision: { atMs: day.endMs, reason: 'budget_spent' } },
      { inMs: 12 * hourMs + resetGuardMs, state: 'budget_spent' },
    ],
    [
      'does so, too, where the API asked to wait for less',
      {
        ...{ unitsLeft: 0, hold: { limit: 'budget', untilMs: nowMs + hourMs } },
        decision: { atMs: day.endMs, reason: 'budget_spent' },
      },
      { inMs: 12 * hourMs + resetGuardMs, state: 'held' },
    ],
    [
      'waits for the first poll that the plan wants of the next day when its units are spent',
      { unitsLeft: 0, decision: { atMs: day.endMs + 5 * hourMs, reason: 'budget_spent' } },
      { inMs: 17 * hourMs, state: 'budget_spent' },
    ],
    [
      'does not wait for that poll where rows are known to wait for the next day',
      { behind: true, unitsLeft: 0, decision: { atMs: day.endMs + 5 * hourMs, reason: 'budget_spent' } },
      { inMs: 12 * hourMs + resetGuardMs, state: 'budget_spent' },
    ],
    [
      'waits for that poll where the next day has no unit for such rows, either',
      {
        ...{ behind: true, unitsLeft: 0, unitsPerDay: 1 },
        decision: { atMs: day.endMs + 5 * hourMs, reason: 'budget_spent' },
      },
      { inMs: 17 * hourMs, state: 'budget_spent' },
    ],
    [
      'tries a call beyond what the API granted once the day is nearly over',
      { unitsLeft: 0, trialAtMs: nowMs + hourMs },
      { inMs: hourMs, state: 'budget_spent' },
    ],
    [
      'tries that once, also where the call failed',
      { unitsLeft: 0, trialAtMs: nowMs - hourMs },
      { inMs: 12 * hourMs + resetGuardMs, state: 'budget_spent' },
    ],
    [
      'is at once on the day that has units for rows that the one before had none for',
      { behind: true, lastShownMs: day.startMs - 1, decision: { atMs: nowMs + hourMs, reason: 'floor' } },
      { inMs: 0, nextReason: 'catch_up' },
    ],
    [
      'is that of the plan once the new day, too, has left such rows',
      { behind: true, decision: { atMs: nowMs + hourMs, reason: 'floor' } },
      { inMs: hourMs, nextReason: 'floor' },
    ],
    [
      'goes on catching up when the minute has room again',
      { decision: { atMs: nowMs, reason: 'catch_up' }, refusedUntilMs: nowMs + 7_000 },
      { inMs: 7_000, nextReason: 'catch_up' },
    ],
    [
      'is not slower than the minute where that refused a poll before its call',
      {
        ...{ decision: { atMs: nowMs - 1, reason: 'fixed' }, minIntervalMs: 30_000, lastStartMs: nowMs },
        ...{ refusedUntilMs: nowMs + 50, minuteRefusals: 1 },
      },
      { inMs: 50, nextReason: 'fixed' },
    ],
    [
      'keeps the shortest interval where the minute refused a page beneath the first',
      {
        ...{ decision: { atMs: nowMs, reason: 'catch_up' }, lastStartMs: nowMs },
        ...{ refusedUntilMs: nowMs + 50, minuteRefusals: 0 },
      },
      { inMs: 2_000 },
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
      { stopped: { reason: 'no token', retryAtMs: nowMs + 300_000, byPlan: true } },
      { inMs: 300_000, state: 'stopped' },
    ],
    [
      'is that of a slower plan while a person is needed',
      {
        decision: { atMs: nowMs + hourMs, reason: 'fixed' },
        stopped: { reason: 'no token', retryAtMs: nowMs + 300_000, byPlan: true },
      },
      { inMs: hourMs, state: 'stopped' },
    ],
    [
      'does not wait for the plan to look for a token, which costs nothing',
      {
        decision: { atMs: nowMs + hourMs, reason: 'fixed' },
        stopped: { reason: 'no token', retryAtMs: nowMs + 5_000, byPlan: false },
      },
      { inMs: 5_000, state: 'stopped' },
    ],
    [
      'is at once when a person asks, also where one was needed',
      { pollRequested: true, stopped: { reason: 'no token', retryAtMs: nowMs + 300_000, byPlan: true } },
      { inMs: 0, state: 'stopped', nextReason: 'hot' },
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

  it.each([
    { unitsPerDay: 1, granted: 1 },
    { unitsPerDay: 10, granted: 10 },
    { unitsPerDay: 2_000, granted: 10 },
  ])(
    'is that of the plan, not faster, with few units: $granted of $unitsPerDay',
    ({ unitsPerDay, granted }) => {
      const options = benchOptions(unitsPerDay)
      const { times, startMs } = createTrace('market', 101, 14)
      const schedule = createSchedule(options, undefined)
      let [at, day] = [startMs, budgetDay(startMs, options)]
      let unitsLeft = granted
      let lastStartMs: number | null = null
      for (let polls = 0; polls < 12 * granted; ) {
        const decision = schedule.next(at, { unitsPerDay: granted, unitsLeft, day })
        const next = decideNextPoll({ ...usual, nowMs: at, decision, day, unitsLeft, lastStartMs })
        if (next.state === 'waiting') expect(next.atMs).toBe(Math.max(at, decision.atMs))
        const isSpent = next.state === 'budget_spent'
        at = isSpent ? day.endMs + resetGuardMs : next.atMs
        if (at >= day.endMs) [day, unitsLeft] = [budgetDay(at, options), granted]
        if (isSpent) continue
        const firedAtMs = times.filter((time) => time > (lastStartMs ?? 0) && time <= at)
        schedule.observe({ atMs: at, ok: true, firedAtMs, pages: 1, pagesLeft: 'none' })
        lastStartMs = at
        ;[unitsLeft, polls] = [unitsLeft - 1, polls + 1]
      }
    },
  )

  it.each([
    [100, 'learned', undefined],
    [24, 'learned', undefined],
    [100, 'fixed', hourMs],
  ])(
    'of a source that waits for a person leaves units until the reset: %d a day, %s',
    (unitsPerDay, _, everyMs) => {
      const options = { ...benchOptions(unitsPerDay), ...(everyMs === undefined ? {} : { everyMs }) }
      const today = budgetDay(nowMs, options)
      const schedule = createSchedule(options, undefined)
      let unitsLeft = unitsPerDay
      const spendUntil = (endMs: number) => {
        for (let at = today.startMs; unitsLeft > 0 && at < endMs; ) {
          schedule.observe({ atMs: at, ok: false, firedAtMs: [], pages: 0, pagesLeft: 'none' })
          unitsLeft--
          const decision = schedule.next(at, { unitsPerDay, unitsLeft, day: today })
          const stopped = { reason: 'no token', retryAtMs: at + 300_000, byPlan: true }
          const { minIntervalMs } = options
          const lastStartMs = at
          at = decideNextPoll({
            ...usual,
            nowMs: at,
            decision,
            day: today,
            unitsLeft,
            lastStartMs,
            minIntervalMs,
            stopped,
          }).atMs
        }
        return unitsLeft
      }
      expect(spendUntil(today.startMs + 20 * hourMs)).toBeGreaterThanOrEqual(unitsPerDay / 12)
    },
  )
})
