import { describe, expect, it } from 'vitest'
import { Batcher } from '../../src/delivery/message/batcher.ts'
import { createMessageLimiter, type MessageLimiter } from '../../src/delivery/message/limiter.ts'
import type { Member, MemberResult } from '../../src/delivery/message/messenger.ts'
import type { BatchPlan } from '../../src/sinks/sink.ts'
import { clockAt, wallClock } from '../support/clock.ts'
import { delivered, deliveryJob, testSink } from './rig.ts'

const dayMs = 86_400_000
const signal = new AbortController().signal

async function sendOne(limiter: MessageLimiter): Promise<void> {
  const over = await limiter.turn(signal)
  over()
}

describe('the pace of messages', () => {
  it('lets so many out in a window, first come, first served', async () => {
    const slept: number[] = []
    let nowMs = 0
    const clock = { ...clockAt(() => nowMs), sleep: async (ms: number) => void slept.push(ms) }
    const pace = createMessageLimiter({ concurrency: 1, rateLimit: { max: 2, per: 1_000 } }, clock)
    for (let turn = 0; turn < 5; turn += 1) await sendOne(pace)
    expect(slept).toEqual([1_000, 1_000, 2_000])
    nowMs = 60_000
    await sendOne(pace)
    expect(slept).toHaveLength(3)
  })

  it('goes on over a change of the config: messages that went out count, turns that were given up do not', async () => {
    const slept: number[] = []
    const calledOff = new AbortController()
    const sleep = (ms: number, asked?: AbortSignal) => {
      slept.push(ms)
      return asked === calledOff.signal ? Promise.reject(new Error('called off')) : Promise.resolve()
    }
    const clock = { ...clockAt(() => 0), sleep }
    const before = createMessageLimiter({ concurrency: 1, rateLimit: { max: 2, per: 1_000 } }, clock)
    for (let turn = 0; turn < 2; turn += 1) await sendOne(before)
    await expect(before.turn(calledOff.signal)).rejects.toThrow()
    const pace = createMessageLimiter({ concurrency: 1, rateLimit: { max: 3, per: 600 } }, clock, before)
    for (let turn = 0; turn < 2; turn += 1) await sendOne(pace)
    expect(slept).toEqual([1_000, 600])
  })
})

describe.each([-dayMs, dayMs])('a wall clock that is set by %d ms', (byMs) => {
  it('makes no message wait longer than its window, nor come before its end', async () => {
    const clock = wallClock()
    const slept: number[] = []
    const sleep = async (ms: number) => void slept.push(ms)
    const pace = createMessageLimiter(
      { concurrency: 1, rateLimit: { max: 1, per: 60_000 } },
      { ...clock, now: clock.now, sleep },
    )
    await sendOne(pace)
    clock.turn(byMs)
    await sendOne(pace)
    expect(slept[0]).toBeLessThanOrEqual(60_000)
    expect(slept[0]).toBeGreaterThan(30_000)
  })

  it('neither ends the window of a burst nor keeps it open', async () => {
    const clock = wallClock()
    const sizes: number[] = []
    const plan: BatchPlan = { kind: 'burst', max: 20, after: 1, windowMs: 300 }
    const batcher = new Batcher({
      batch: { plan, split: (parcels) => [[...parcels]], send: async () => delivered },
      limits: { concurrency: 1, rateLimit: { max: 1, per: 100 } },
      clock,
      send: async (members) => {
        sizes.push(members.length)
        return delivered
      },
      isOpen: () => false,
      splitFailed: () => {},
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
  return { alert, number: 1, isLast: false, waitMsMax: 60_000, signal, ready: async () => true }
}
