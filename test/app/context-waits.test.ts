import { describe, expect, it } from 'vitest'
import { createContextWaits } from '../../src/app/context-waits.ts'
import { clockAt } from '../support/clock.ts'

const deadlineMs = 2_000

function rig() {
  let nowMs = 1_000_000
  const waits = createContextWaits(clockAt(() => nowMs))
  const begin = (queuedAtMs: number, sink = 'mail') => waits.begin(sink, queuedAtMs, deadlineMs)
  return {
    begin,
    now: () => nowMs,
    pass(ms: number) {
      nowMs += ms
    },
    /** The alert waits for all that is left to it, or for an endpoint that answers in `answersMs`. */
    wait(queuedAtMs: number, answersMs = deadlineMs) {
      const { leftMs, end } = begin(queuedAtMs)
      nowMs += Math.min(leftMs, answersMs)
      end()
      return leftMs
    },
  }
}

describe('what alerts wait for their context', () => {
  it('is one deadline together, where a sink sends those of several pages one after the other', () => {
    const { wait, now } = rig()
    const startMs = now()
    const sent = [startMs, startMs + 200, startMs + 400].flatMap((queuedAtMs) =>
      [1, 2].map(() => ({ left: wait(queuedAtMs, 1_500), afterMs: now() - queuedAtMs })),
    )
    // Those of a later page have not waited while the first page alone was there.
    expect(sent.map(({ left }) => left)).toEqual([2_000, 500, 200, 0, 200, 0])
    expect(Math.max(...sent.map(({ afterMs }) => afterMs))).toBe(deadlineMs)
  })

  it('does not count for one that was queued later, or is sent again, or goes to another sink', () => {
    const { wait, begin, now, pass } = rig()
    const first = now()
    expect(wait(first)).toBe(2_000)
    expect(begin(first).leftMs).toBe(0)
    expect(begin(first, 'chat').leftMs).toBe(2_000)
    pass(60_000)
    expect(begin(now()).leftMs).toBe(2_000)
  })

  it('counts once where several wait at the same time', () => {
    const { begin, now, pass } = rig()
    const queuedAtMs = now()
    const all = [1, 2, 3].map(() => begin(queuedAtMs))
    expect(all.map(({ leftMs }) => leftMs)).toEqual([2_000, 2_000, 2_000])
    pass(700)
    expect(begin(queuedAtMs + 500).leftMs).toBe(1_800)
    for (const { end } of all) end()
    expect(begin(queuedAtMs).leftMs).toBe(1_300)
  })

  it('is forgotten as far as it matters no more', () => {
    const { wait, begin, now } = rig()
    const first = now()
    for (let count = 0; count < 1_100; count += 1) wait(now(), 10)
    expect(begin(first).leftMs).toBe(0)
  })
})
