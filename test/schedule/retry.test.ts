import { expect, it } from 'vitest'
import { type Attempts, noteAttempt, retryAt } from '../../src/schedule/time/attempts.ts'

const nowMs = Date.UTC(2026, 10, 21, 12)

it('a failed call is tried again soon, three times; then the plan goes on', () => {
  const attempts: Attempts = { lastAtMs: null, failures: 0 }
  const retries = [1, 2, 3, 4].map((call) => {
    noteAttempt(attempts, { atMs: nowMs + call, ok: false })
    return retryAt(attempts, 500)
  })
  expect(retries).toEqual([nowMs + 2_001, nowMs + 2_002, nowMs + 2_003, undefined])
  noteAttempt(attempts, { atMs: nowMs + 5, ok: true })
  expect(retryAt(attempts, 500)).toBeUndefined()
})

it('reports out of order leave the latest instant, a clock that was set back begins anew', () => {
  const attempts: Attempts = { lastAtMs: nowMs, failures: 0 }
  noteAttempt(attempts, { atMs: nowMs - 30_000, ok: true })
  expect(attempts.lastAtMs).toBe(nowMs)
  noteAttempt(attempts, { atMs: nowMs - 86_400_000, ok: true })
  expect(attempts.lastAtMs).toBe(nowMs - 86_400_000)
})
