import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { delayMs, pausesMs, retryAfterMsMax } from '../../src/delivery/backoff.ts'

const hourMs = 3_600_000
const policy = { attempts: 11, initialDelayMs: 5_000, maxDelayMs: 8 * hourMs }
const middle = () => 0.5

describe('the retry schedule', () => {
  it('spans about a day with the defaults', () => {
    const pauses = pausesMs(policy)
    expect(pauses).toHaveLength(10)
    expect(pauses[0]).toBe(5_000)
    expect(pauses.at(-1)).toBe(8 * hourMs)
    const sum = pauses.reduce((total, each) => total + each, 0)
    expect(sum / hourMs).toBeGreaterThan(23.9)
    expect(sum / hourMs).toBeLessThan(24.1)
  })

  it('makes half of its attempts in the first four minutes', () => {
    const early = pausesMs(policy).slice(0, 4)
    expect(early.reduce((total, each) => total + each, 0)).toBeLessThan(4.5 * 60_000)
  })

  it('spreads every pause by a fifth to either side', () => {
    expect(delayMs(1, policy, undefined, () => 0)).toBe(4_000)
    expect(delayMs(1, policy, undefined, middle)).toBe(5_000)
    expect(delayMs(1, policy, undefined, () => 1)).toBe(6_000)
  })

  it('never grows beyond the maximum and its spread, at any attempt of any policy', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5_000 }),
        fc.integer({ min: 100, max: hourMs }),
        fc.integer({ min: 100, max: 7 * 24 * hourMs }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (attempt, initialDelayMs, maxDelayMs, at) => {
          const delay = delayMs(attempt, { attempts: 100, initialDelayMs, maxDelayMs }, undefined, () => at)
          expect(delay).toBeGreaterThanOrEqual(Math.floor(initialDelayMs * 0.8))
          expect(delay).toBeLessThanOrEqual(Math.ceil(Math.max(initialDelayMs, maxDelayMs) * 1.2))
        },
      ),
    )
  })
})

describe('what the remote asks for', () => {
  it('is waited for when it is longer than the own pause, and not when it is shorter', () => {
    expect(delayMs(1, policy, 30_000, middle)).toBe(30_000)
    expect(delayMs(3, policy, 1_000, middle)).toBeGreaterThan(50_000)
  })

  it('is obeyed up to an hour', () => {
    expect(delayMs(1, policy, 400 * 24 * hourMs, middle)).toBe(retryAfterMsMax)
  })
})
