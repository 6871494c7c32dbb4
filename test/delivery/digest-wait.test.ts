import { describe, expect, it } from 'vitest'
import { waitsUntil } from '../../src/delivery/message/digest.ts'
import { deliveryJob, quickSettings, testSink } from './rig.ts'

const minute = 60_000
const hour = 60 * minute

/** Until when an alert that was seen then waits, by a clock that shows this now. */
function waits(
  at: { seen: string; now?: string; requested?: string },
  { expireAfterMs = 24 * hour, everyMs = 15 * minute } = {},
): string | undefined {
  const plan = { kind: 'digest' as const, max: 60, everyMs, timeZone: 'Europe/Berlin' }
  const batch = { plan, split: () => [], send: () => Promise.reject(new Error('not called')) }
  const job = {
    ...deliveryJob('ops', 1, { firedAt: at.seen }),
    seenAtMs: Date.parse(at.seen),
    ...(at.requested === undefined ? {} : { requestedAtMs: Date.parse(at.requested) }),
  }
  const entry = { sink: { ...testSink('ops'), batch }, settings: { ...quickSettings, expireAfterMs } }
  const untilMs = waitsUntil(job, entry, Date.parse(at.now ?? at.requested ?? at.seen))
  return untilMs === undefined ? undefined : new Date(untilMs).toISOString()
}

describe('an alert waits for the mark of its digest', () => {
  it('until the mark, and no longer', () => {
    const seen = '2026-11-22T10:01:00Z'
    expect(waits({ seen })).toBe('2026-11-22T10:15:00.000Z')
    expect(waits({ seen, now: '2026-11-22T10:14:59.999Z' })).toBe('2026-11-22T10:15:00.000Z')
    expect(waits({ seen, now: '2026-11-22T10:15:00Z' })).toBeUndefined()
    expect(waits({ seen, requested: '2026-11-23T11:50:00Z' })).toBe('2026-11-23T12:00:00.000Z')
  })

  it('unless it would be too old before the digest is gathered and sent', () => {
    const seen = '2026-11-22T10:00:20Z'
    const mark = '2026-11-22T10:15:00.000Z'
    expect(waits({ seen }, { expireAfterMs: 15 * minute + 10_000 })).toBe(mark)
    expect(waits({ seen }, { expireAfterMs: 15 * minute + 9_999 })).toBeUndefined()
  })

  it('not where the clock that says when it came was hours ahead of this one', () => {
    const seen = '2026-11-22T16:01:00Z'
    expect(waits({ seen, now: '2026-11-22T10:01:00Z' })).toBeUndefined()
    expect(waits({ seen, requested: seen, now: '2026-11-22T10:01:00Z' })).toBeUndefined()
    // The same mark as of an alert that comes now is no longer wait than it has.
    expect(waits({ seen, now: '2026-11-22T10:01:00Z' }, { everyMs: 24 * hour })).toBe(
      '2026-11-22T23:00:00.000Z',
    )
  })

  it('also while the hour comes twice', () => {
    for (const everyMs of [minute, 15 * minute, hour, 24 * hour])
      for (
        let now = Date.parse('2026-10-24T23:50:00Z');
        now < Date.parse('2026-10-25T02:00:00Z');
        now += 7 * minute
      ) {
        const seen = new Date(now - 1_000).toISOString()
        const untilMs = Date.parse(waits({ seen }, { everyMs }) ?? '')
        if (untilMs > now)
          expect(waits({ seen, now: new Date(now).toISOString() }, { everyMs })).toBeDefined()
      }
  })
})
