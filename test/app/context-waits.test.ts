import { describe, expect, it } from 'vitest'
import { createContextWaits } from '../../src/app/context-waits.ts'
import { clockAt } from '../support/clock.ts'

const deadlineMs = 2_000

function rig() {
  let nowMs = 1_000_000
  const waits = createContextWaits(clockAt(() => nowMs))
  const begin = (emptyMs: number, { sink = 'mail', deadline = deadlineMs } = {}) =>
    waits.begin(sink, emptyMs, deadline)
  return {
    begin,
    now: () => nowMs,
    pass(ms: number) {
      nowMs += ms
    },
    /** The alert waits for all that is left to it, or for an endpoint that answers in `answersMs`. */
    wait(emptyMs: number, answersMs = deadlineMs) {
      const { leftMs, end } = begin(emptyMs)
      nowMs += Math.min(leftMs, answersMs)
      end()
      return leftMs
    },
  }
}

describe('what alerts wait for their context', () => {
  it('is one deadline together, where a sink sends them one after the other and its queue is not empty between', () => {
    const { wait, now, pass } = rig()
    const startMs = now()
    const left = Array.from({ length: 5 }, () => {
      pass(300)
      return wait(startMs, 1_500)
    })
    // The sends between are no waits.
    expect(left).toEqual([2_000, 500, 0, 0, 0])
    expect(now() - startMs).toBe(deadlineMs + 5 * 300)
  })

  it('does not count for one that came into an empty queue, or goes to another sink', () => {
    const { wait, begin, now, pass } = rig()
    const first = now()
    expect(wait(first)).toBe(2_000)
    expect(begin(first).leftMs).toBe(0)
    expect(begin(first, { sink: 'chat' }).leftMs).toBe(2_000)
    pass(60_000)
    expect(begin(now()).leftMs).toBe(2_000)
  })

  it('counts once where several wait at the same time, from when the queue was empty', () => {
    const { begin, now, pass } = rig()
    const startMs = now()
    const all = [1, 2, 3].map(() => begin(startMs))
    expect(all.map(({ leftMs }) => leftMs)).toEqual([2_000, 2_000, 2_000])
    pass(700)
    expect(begin(startMs).leftMs).toBe(1_300)
    expect(begin(startMs + 500).leftMs).toBe(1_800)
  })

  it('counts however short it is, and however often', () => {
    const { wait, begin, now } = rig()
    const startMs = now()
    for (let count = 0; count < 1_999; count += 1) wait(startMs, 1)
    expect(begin(startMs).leftMs).toBe(1)
  })

  it('is the deadline of each, less what the sink has waited', () => {
    const { wait, begin, now } = rig()
    const startMs = now()
    wait(startMs, 700)
    const left = [500, 1_000, 5_000].map((deadline) => begin(startMs, { deadline }).leftMs)
    expect(left).toEqual([0, 300, 4_300])
  })
})
