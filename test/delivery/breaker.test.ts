import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterAttempt,
  type Breaker,
  type BreakerEvent,
  closedBreaker,
} from '../../src/delivery/circuit/breaker.ts'

const limits = { faultsToOpen: 3, probesARound: 1, firstPauseMs: 5_000, pauseMsMax: 60_000 }
const at = (monotonicMs: number) => ({ wallMs: wallMs + monotonicMs, monotonicMs })
const wallMs = 1_800_000_000_000

function fault(alert: string, startedAtMs = 0): BreakerEvent {
  return { signal: 'fault', alert, reason: 'connect', startedAtMs }
}

function answer(startedAtMs = 0): BreakerEvent {
  return { signal: 'answered', alert: 'x', reason: 'delivered', startedAtMs }
}

function run(events: BreakerEvent[], from: Breaker = closedBreaker, nowMs = 0) {
  return events.reduce((step, event) => afterAttempt(step.breaker, event, limits, at(nowMs)), {
    breaker: from,
  } as ReturnType<typeof afterAttempt>)
}

const open = run([fault('a'), fault('b'), fault('c')], closedBreaker, 1_000).breaker

describe('the breaker', () => {
  it('opens at the third fault in a row and holds the queue for the first pause', () => {
    expect(run([fault('a'), fault('b')]).change).toBeUndefined()
    const step = run([fault('a'), fault('b'), fault('a')], closedBreaker, 1_000)
    expect(step).toMatchObject({ change: 'opened', holdMs: 5_000 })
    expect(step.breaker).toMatchObject({ state: 'open', reason: 'connect', sinceMs: wallMs + 1_000 })
  })

  it('does not open for one alert that the sink cannot digest', () => {
    expect(run(Array.from({ length: 50 }, () => fault('a'))).breaker.state).toBe('closed')
  })

  it('counts attempts of one alert that other processes made, where nothing of it was seen and nothing taken since', () => {
    const unread = (attempts: number): BreakerEvent => ({ ...fault('a'), alert: undefined, attempts })
    expect(run([unread(2), unread(3)]).change).toBe('opened')
    expect(run([unread(1), unread(2)]).change).toBeUndefined()
    expect(run([unread(9)]).change).toBeUndefined()
    expect(run([unread(9), answer(), unread(10), answer(), unread(11)]).change).toBeUndefined()
  })

  it('does not open for one alert that the sink cannot digest where it was not reached once meanwhile, but where it was not twice', () => {
    const unread = (attempts: number): BreakerEvent => ({ ...fault('a'), alert: undefined, attempts })
    expect(run([fault('a'), fault('a'), fault('a'), unread(4)]).change).toBeUndefined()
    expect(run([unread(1), fault('a'), fault('a'), fault('a')]).change).toBeUndefined()
    expect(run([fault('a'), unread(2), fault('a'), unread(4)]).change).toBe('opened')
  })

  it('starts counting anew after any answer', () => {
    expect(run([fault('a'), fault('b'), answer(), fault('c'), fault('d')]).breaker.state).toBe('closed')
  })

  it('learns nothing from what says nothing about the sink', () => {
    const none: BreakerEvent = { signal: 'none', alert: 'x', reason: 'rate_limited', startedAtMs: 0 }
    expect(run([fault('a'), none, fault('b'), none, fault('c')]).change).toBe('opened')
    expect(run([none], open).breaker).toBe(open)
  })

  it('takes what a sink refuses that was down for a probe that failed, and while it is closed for nothing', () => {
    const refused: BreakerEvent = { ...fault('x', 1_001), signal: 'none', refuses: true, reason: 'gone: 410' }
    expect(run([refused], open, 2_000)).toMatchObject({ holdMs: 10_000, breaker: { reason: 'gone: 410' } })
    expect(run([refused, refused, refused, refused]).breaker).toBe(closedBreaker)
  })

  it('is not moved by sends that were on their way when it opened', () => {
    const refused: BreakerEvent = { ...fault('e', 999), signal: 'none', refuses: true }
    expect(run([fault('d', 999), refused], open, 2_000)).toEqual({ breaker: open })
  })

  it('doubles the pause at every failed probe, up to the longest', () => {
    let step = { breaker: open } as ReturnType<typeof afterAttempt>
    const pauses: (number | undefined)[] = []
    for (let nowMs = 10_000; nowMs < 60_000; nowMs += 10_000) {
      step = afterAttempt(step.breaker, fault('p', nowMs - 1), limits, at(nowMs))
      pauses.push(step.holdMs)
    }
    expect(pauses).toEqual([10_000, 20_000, 40_000, 60_000, 60_000])
    expect(step.change).toBeUndefined()
  })

  it('lets several alerts probe before it pauses again', () => {
    const several = { ...limits, probesARound: 3 }
    let step = { breaker: open } as ReturnType<typeof afterAttempt>
    const pauses: (number | undefined)[] = []
    for (let nowMs = 10_000; nowMs < 16_000; nowMs += 1_000) {
      step = afterAttempt(step.breaker, fault('p', nowMs - 1), several, at(nowMs))
      pauses.push(step.holdMs)
    }
    expect(pauses).toEqual([undefined, undefined, 10_000, undefined, undefined, 20_000])
    expect(step.breaker).toMatchObject({ probes: 6, heldAtMs: 15_000 })
  })

  it('closes at the first answer, and tells it once', () => {
    const step = run([answer(500)], open, 9_000)
    expect(step).toEqual({ breaker: closedBreaker, change: 'closed' })
    expect(run([answer()], step.breaker).change).toBeUndefined()
  })

  it('tells of opening and closing in turn, whatever happens', () => {
    const event = fc.record({
      signal: fc.constantFrom('answered' as const, 'fault' as const, 'none' as const),
      alert: fc.constantFrom('a', 'b', 'c'),
      reason: fc.constant('connect'),
      startedAtMs: fc.nat(1_000),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let breaker: Breaker = closedBreaker
        const changes: string[] = []
        for (const [index, each] of events.entries()) {
          const step = afterAttempt(breaker, each, limits, at(index * 20))
          breaker = step.breaker
          if (step.change) changes.push(step.change)
        }
        for (const [index, change] of changes.entries())
          expect(change).toBe(index % 2 === 0 ? 'opened' : 'closed')
      }),
    )
  })
})
