import { expect, it } from 'vitest'
import { type Attempts, emptyAttempts, nextAfter, noteAttempt } from '../../src/schedule/memory.ts'

const nowMs = Date.UTC(2026, 10, 21, 12)
const planned = { atMs: nowMs + 30_000, reason: 'expected' } as const
const ok = { ok: true, pagesLeft: 'none' } as const

function nextOf(attempts: Partial<Attempts>, plan: { atMs: number } = planned) {
  const all = { ...emptyAttempts(), lastAtMs: nowMs, ...attempts }
  const { atMs, reason } = nextAfter(all, nowMs, 500, () => ({ ...planned, ...plan }))
  return { inMs: atMs - nowMs, reason }
}

it.each<[string, Partial<Attempts>, { inMs: number; reason: string }]>([
  ['the first poll is now', { lastAtMs: null }, { inMs: 0, reason: 'first' }],
  [
    'a clock that was set back since the last poll begins anew',
    { lastAtMs: nowMs + 86_400_000 },
    { inMs: 0, reason: 'first' },
  ],
  ['a failed call is tried again soon', { failures: 3 }, { inMs: 2_000, reason: 'retry' }],
  ['then the plan goes on', { failures: 4 }, { inMs: 30_000, reason: 'expected' }],
  ['pages that wait are read at once', { pagesLeft: 'ready' }, { inMs: 500, reason: 'catch_up' }],
  [
    'but not while the first page fails',
    { pagesLeft: 'ready', failures: 4 },
    { inMs: 30_000, reason: 'expected' },
  ],
  [
    'pages that could not be read are tried again soon',
    { pagesLeft: 'failed', pageFailures: 3 },
    { inMs: 2_000, reason: 'retry' },
  ],
  [
    'again and again failing, they are left to the plan',
    { pagesLeft: 'failed', pageFailures: 4 },
    { inMs: 30_000, reason: 'expected' },
  ],
])('%s', (_, attempts, next) => {
  expect(nextOf(attempts)).toEqual(next)
})

it('a feed that goes on failing is called less and less often, up to once a minute', () => {
  const pauses = [4, 5, 6, 7, 8, 9, 100].map((failures) => nextOf({ failures }, { atMs: nowMs }).inMs)
  expect(pauses).toEqual([4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
})

it('failures in a row are counted, of first pages and of those beneath', () => {
  const attempts = emptyAttempts()
  const failed = { atMs: nowMs, ok: false, pagesLeft: 'none' } as const
  const left = { atMs: nowMs, ok: true, pagesLeft: 'failed' } as const
  for (const poll of [left, left, failed, failed]) noteAttempt(attempts, poll)
  expect(attempts).toMatchObject({ failures: 2, pagesLeft: 'failed', pageFailures: 2 })
  noteAttempt(attempts, { atMs: nowMs, ...ok })
  expect(attempts).toEqual({ ...emptyAttempts(), lastAtMs: nowMs })
})

it('reports out of order leave the latest instant, a clock that was set back begins anew', () => {
  const attempts = { ...emptyAttempts(), lastAtMs: nowMs }
  noteAttempt(attempts, { atMs: nowMs - 30_000, ...ok })
  expect(attempts.lastAtMs).toBe(nowMs)
  noteAttempt(attempts, { atMs: nowMs - 86_400_000, ...ok })
  expect(attempts.lastAtMs).toBe(nowMs - 86_400_000)
})
