import { Worker } from 'bullmq'
import { describe, expect, it, vi } from 'vitest'
import { stuckSince } from '../../src/delivery/watchdog.ts'
import { useRedis } from '../support/redis.ts'
import { bench, jobs, testSink, until } from './support.ts'

const server = useRedis()

const stuck = { waiting: 3, active: 0, paused: false, limited: false }

describe('a consumer', () => {
  it('looks dead while jobs wait and nobody takes one, since the first time it did', () => {
    expect(stuckSince(stuck, undefined, 1_000)).toBe(1_000)
    expect(stuckSince(stuck, 1_000, 9_000)).toBe(1_000)
  })

  it.each([
    ['nothing waits', { ...stuck, waiting: 0 }],
    ['one is being sent', { ...stuck, active: 1 }],
    ['the sink is paused', { ...stuck, paused: true }],
    ['the queue is held', { ...stuck, limited: true }],
    ['Redis does not answer', undefined],
  ])('does not look dead when %s', (_why, view) => {
    expect(stuckSince(view, 1_000, 9_000)).toBeUndefined()
  })

  it('that is dead is replaced, and the jobs go out', async () => {
    const { queues, sender, lines } = bench(server, ['hook'])
    // As workers did after an outage: it says that it runs, and fetches nothing.
    const run = vi.spyOn(Worker.prototype, 'run').mockImplementationOnce(async () => {})
    const sink = testSink('hook')
    sender([sink], { tuning: { watchEveryMs: 50, stuckMs: 200 } })
    await queues.enqueue(jobs('hook', 1, 3))
    await until('sent', () => sink.sends.length === 3)
    expect(lines.filter(({ msg }) => String(msg).includes('new worker'))).toHaveLength(1)
    expect(run).toHaveBeenCalledTimes(2)
    run.mockRestore()
  })
})
