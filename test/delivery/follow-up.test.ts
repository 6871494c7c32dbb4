import { describe, expect, it } from 'vitest'
import { expiresAtMs, faultText, followUpOf, signalOf } from '../../src/delivery/attempt/follow-up.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { delivered, deliveryJob, quickSettings, rejected, unavailable } from './rig.ts'

const hourMs = 3_600_000
const settings = {
  ...quickSettings,
  retry: { attempts: 11, initialDelayMs: 5_000, maxDelayMs: 8 * hourMs },
  expireAfterMs: 24 * hourMs,
}
const at = { number: 1, nowMs: 0, expiresAtMs: 24 * hourMs, brokenOff: false }
const aborted: Outcome = { kind: 'retry', reason: 'aborted', sinkFault: false, answer: { text: '' } }
const middle = () => 0.5

describe('what follows an outcome', () => {
  it('is the end when the sink took it or refused it for good', () => {
    expect(followUpOf(delivered, at, settings)).toMatchObject({ kind: 'delivered' })
    expect(followUpOf(rejected, at, settings)).toMatchObject({ kind: 'dead', reason: 'rejected' })
  })

  it('is a burnt attempt after the own pause, and the queue goes on', () => {
    const followUp = followUpOf(unavailable, at, settings, middle)
    expect(followUp).toMatchObject({ kind: 'again', delayMs: 5_000, burnt: true })
    expect(followUp).not.toHaveProperty('holdMs')
  })

  it('is the dead letters after the last attempt', () => {
    expect(followUpOf(unavailable, { ...at, number: 10 }, settings).kind).toBe('again')
    expect(followUpOf(unavailable, { ...at, number: 11 }, settings)).toMatchObject({
      kind: 'dead',
      reason: 'attempts_exhausted',
    })
  })

  it('is patience that burns nothing when a 429 says how long, even at the last attempt', () => {
    const limited: Outcome = { ...unavailable, reason: 'rate_limited', afterMs: 30_000 }
    expect(followUpOf(limited, { ...at, number: 11 }, settings)).toMatchObject({
      kind: 'again',
      delayMs: 30_000,
      holdMs: 30_000,
      burnt: false,
    })
    const forEver = followUpOf({ ...limited, afterMs: 90 * 24 * hourMs }, at, settings)
    expect(forEver).toMatchObject({ holdMs: hourMs })
    // "Now" would be a loop without end.
    expect(followUpOf({ ...limited, afterMs: 0 }, at, settings)).toMatchObject({ delayMs: 5_000 })
  })

  it('holds the queue for a minute at most when a 429 does not say how long', () => {
    const limited: Outcome = { ...unavailable, reason: 'rate_limited' }
    expect(followUpOf(limited, { ...at, number: 9 }, settings, middle)).toMatchObject({
      holdMs: 60_000,
      delayMs: 8 * hourMs,
      burnt: true,
    })
  })

  it('holds the queue as any other answer asks, and burns the attempt', () => {
    expect(followUpOf({ ...unavailable, afterMs: 120_000 }, at, settings, middle)).toMatchObject({
      holdMs: 120_000,
      delayMs: 120_000,
      burnt: true,
    })
  })

  it('is the queue again when we broke it off ourselves, and an attempt when the sink did', () => {
    expect(followUpOf(aborted, { ...at, brokenOff: true }, settings).kind).toBe('back')
    expect(followUpOf(aborted, at, settings).kind).toBe('again')
    expect(followUpOf(delivered, { ...at, brokenOff: true }, settings).kind).toBe('delivered')
  })

  it('costs nothing when the alert only probed the sink before its time', () => {
    const early = followUpOf(unavailable, { ...at, number: 11, earlyMs: 700_000 }, settings)
    expect(early).toMatchObject({ kind: 'again', delayMs: 700_000, burnt: false })
    // What its job says of it stays true.
    expect(early).not.toHaveProperty('dueInMs')
    expect(followUpOf(unavailable, { ...at, earlyMs: 0 }, settings)).toMatchObject({ burnt: true })
  })

  it('is due again after the pause, and never before the time that the sink has named', () => {
    const told: Outcome = { ...unavailable, afterMs: 60_000 }
    const limited: Outcome = { ...told, reason: 'rate_limited' }
    const due = (outcome: Outcome, earlyMs: number) =>
      followUpOf(outcome, { ...at, earlyMs }, settings, middle)
    expect(due(unavailable, 0)).toMatchObject({ delayMs: 5_000, dueInMs: 5_000 })
    for (const each of [told, limited]) {
      expect(due(each, 7_000)).toMatchObject({ holdMs: 60_000, dueInMs: 60_000, burnt: false })
      expect(due(each, hourMs)).toMatchObject({ holdMs: 60_000, dueInMs: hourMs, burnt: false })
    }
  })

  it('brings the last attempt before the end of an alert instead of missing it', () => {
    const late = { ...at, number: 9, nowMs: 20 * hourMs }
    expect(followUpOf(unavailable, late, settings, middle)).toMatchObject({ delayMs: 4 * hourMs - 60_000 })
  })

  it('is the dead letters, as expired, when there is no time left for another attempt', () => {
    const late = { ...at, nowMs: 24 * hourMs - 3_000 }
    expect(followUpOf(unavailable, late, settings)).toMatchObject({ kind: 'dead', reason: 'expired' })
  })
})

describe('the age of an alert', () => {
  const firedAt = '2024-11-21T08:00:00.000Z'
  const firedAtMs = Date.parse(firedAt)

  it('counts from when it fired', () => {
    expect(expiresAtMs(deliveryJob('hook', 1, { firedAt }), settings)).toBe(firedAtMs + 24 * hourMs)
  })

  it('counts from when it was seen where the firing time is no date or lies ahead', () => {
    for (const strange of ['soon', '9999-12-31T00:00:00Z', '1405-08-30T00:00:00Z', '1970-01-01T00:00:00Z']) {
      const job = deliveryJob('hook', 1, { firedAt: strange })
      expect(expiresAtMs(job, settings)).toBe(job.seenAtMs + 24 * hourMs)
    }
  })

  it('counts from when it was seen where no config says how old it may be: history that was asked for is sent', () => {
    const { expireAfterMs: _, ...open } = settings
    const job = deliveryJob('hook', 1, { firedAt: '2020-01-01T00:00:00Z' })
    expect(expiresAtMs(job, open)).toBe(job.seenAtMs + 24 * hourMs)
    expect(expiresAtMs({ ...job, requestedAtMs: 7 }, open)).toBe(7 + 24 * hourMs)
  })

  it('is no end to a schedule that takes longer than a day, where no config says how old an alert may be', () => {
    const { expireAfterMs: _, ...open } = settings
    const job = deliveryJob('hook', 1)
    for (const retry of [
      { attempts: 20, initialDelayMs: 5_000, maxDelayMs: 8 * hourMs },
      { attempts: 11, initialDelayMs: 30_000, maxDelayMs: 8 * hourMs },
    ])
      for (const luck of [0, 0.5, 1]) {
        const own = { ...open, retry }
        let nowMs = job.seenAtMs
        let number = 1
        let followUp = followUpOf(unavailable, lived(), own, () => luck)
        for (; followUp.kind === 'again'; followUp = followUpOf(unavailable, lived(), own, () => luck)) {
          nowMs += followUp.delayMs
          number += 1
        }
        expect({ number, ...followUp }).toMatchObject({
          number: retry.attempts,
          reason: 'attempts_exhausted',
        })
        expect(nowMs - job.seenAtMs).toBeGreaterThan(24 * hourMs)
        function lived() {
          return { number, nowMs, expiresAtMs: expiresAtMs(job, own), brokenOff: false }
        }
      }
  })

  it('counts from when an operator asked for it', () => {
    const job = { ...deliveryJob('hook', 1, { firedAt: '2020-01-01T00:00:00Z' }), requestedAtMs: firedAtMs }
    expect(expiresAtMs(job, settings)).toBe(firedAtMs + 24 * hourMs)
  })
})

describe('what an outcome says about the sink', () => {
  it('is that it answers when it took the alert or refused this one', () => {
    expect([delivered, rejected].map(signalOf)).toEqual(['answered', 'answered'])
  })

  it('is a fault when the sink is down, and nothing when it asks for patience or refuses everything', () => {
    expect(signalOf(unavailable)).toBe('fault')
    expect(signalOf({ ...unavailable, reason: 'rate_limited' })).toBe('none')
    expect(signalOf({ ...rejected, kind: 'dead', reason: 'gone', sinkFault: true })).toBe('none')
    expect(signalOf({ ...unavailable, sinkFault: false })).toBe('none')
  })
})

it('what operators are shown of a fault names its reason once, whatever was answered', () => {
  const texts = ['', 'refused 10.0.0.1'].map((text) =>
    faultText({ kind: 'dead', reason: 'blocked_address', sinkFault: true, answer: { text } }),
  )
  expect(texts).toEqual(['blocked_address', 'blocked_address: refused 10.0.0.1'])
  expect(faultText(unavailable)).toBe('server_error: 503 busy')
})
