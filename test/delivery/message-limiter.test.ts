import { describe, expect, it } from 'vitest'
import { Batcher } from '../../src/delivery/batcher.ts'
import { createMessageLimiter } from '../../src/delivery/message-limiter.ts'
import type { Member, MemberResult } from '../../src/delivery/messenger.ts'
import type { BatchPlan } from '../../src/sinks/sink.ts'
import { clockAt, wallClock } from '../support/clock.ts'
import { delivered, deliveryJob, testSink } from './support.ts'

const dayMs = 86_400_000
const signal = new AbortController().signal

describe('the pace of messages', () => {
  it('lets so many out in a window, first come, first served', async () => {
    const slept: number[] = []
    let nowMs = 0
    const clock = { ...clockAt(() => nowMs), sleep: async (ms: number) => void slept.push(ms) }
    const pace = createMessageLimiter({ max: 2, per: 1_000 }, clock)
    for (let turn = 0; turn < 5; turn += 1) await pace.wait(signal)
    expect(slept).toEqual([1_000, 1_000, 2_000])
    nowMs = 60_000
    await pace.wait(signal)
    expect(slept).toHaveLength(3)
  })

  it('goes on over a change of the config: messages that went out count, turns that were given up do not', async () => {
    const slept: number[] = []
    const sleep = (ms: number, { aborted }: AbortSignal = signal) => {
      slept.push(ms)
      return aborted ? Promise.reject(new Error('called off')) : Promise.resolve()
    }
    const clock = { ...clockAt(() => 0), sleep }
    const before = createMessageLimiter({ max: 2, per: 1_000 }, clock)
    for (let turn = 0; turn < 2; turn += 1) await before.wait(signal)
    await expect(before.wait(AbortSignal.abort())).rejects.toThrow()
    const pace = createMessageLimiter({ max: 3, per: 600 }, clock, before)
    for (let turn = 0; turn < 2; turn += 1) await pace.wait(signal)
    expect(slept).toEqual([1_000, 600])
  })
})

describe.each([-dayMs, dayMs])('a wall clock that is set by %d ms', (byMs) => {
  it('makes no message wait longer than its window, nor come before its end', async () => {
    const clock = wallClock()
    const slept: number[] = []
    const sleep = async (ms: number) => void slept.push(ms)
    const pace = createMessageLimiter({ max: 1, per: 60_000 }, { ...clock, now: clock.now, sleep })
    await pace.wait(signal)
    clock.turn(byMs)
    await pace.wait(signal)
    expect(slept[0]).toBeLessThanOrEqual(60_000)
    expect(slept[0]).toBeGreaterThan(30_000)
  })

  it('neither ends the window of a burst nor keeps it open', async () => {
    const clock = wallClock()
    const sizes: number[] = []
    const plan: BatchPlan = { kind: 'burst', max: 20, after: 1, windowMs: 300 }
    const batcher = new Batcher({
      batch: { plan, split: (parcels) => [[...parcels]], send: async () => delivered },
      rateLimit: { max: 1, per: 100 },
      clock,
      send: async (members) => {
        sizes.push(members.length)
        return delivered
      },
      isOpen: () => false,
      refused: () => {},
    })
    await batcher.join(member(1))
    clock.turn(byMs)
    const group: Promise<MemberResult>[] = [batcher.join(member(2))]
    clock.turn(byMs)
    group.push(batcher.join(member(3)))
    expect(await Promise.all(group)).toMatchObject([{ step: 'sent' }, { step: 'sent' }])
    expect(sizes).toEqual([1, 2])
  })
})

function member(id: number): Member {
  const { alert } = deliveryJob(testSink('ops').name, id)
  return { alert, number: 1, isLast: false, signal, ready: async () => true }
}
