import { describe, expect, it } from 'vitest'
import type { BreakerNews } from '../../src/delivery/sender.ts'
import { useRedis } from '../support/redis.ts'
import { bench, delivered, jobs, testSink, unavailable, until } from './support.ts'

const server = useRedis()

const slowRetry = { attempts: 5, initialDelayMs: 150, maxDelayMs: 3_600_000 }

describe('a sink that is down', () => {
  it('is left alone but for single probes, and gets everything soon after it is back, nothing burnt beyond its schedule', async () => {
    const { queues, sender, metrics } = bench(server, ['hook'])
    const news: BreakerNews[] = []
    const sink = testSink('hook', () => unavailable)
    const running = sender([sink], {
      settings: { retry: slowRetry, concurrency: 10 },
      tuning: { faultsToOpen: 5, probePauseMsMax: 400 },
      more: { onBreaker: (each) => news.push(each) },
    })
    await queues.enqueue(jobs('hook', 1, 200))
    await until('open', () => news.length > 0)
    expect(news).toEqual([{ sink: 'hook', state: 'open', reason: 'server_error' }])
    expect(running.states()).toMatchObject([{ sink: 'hook', breaker: 'open', reason: 'server_error' }])
    expect((await metrics.circuitOpen.get()).values[0]?.value).toBe(1)
    // What was on its way when it opened is a few; then one at a time.
    await until('that has ended', () => running.states()[0]?.sending === 0)
    const probesFrom = sink.sends.length
    expect(probesFrom).toBeLessThanOrEqual(20)
    await until('probes', () => sink.sends.length >= probesFrom + 4)
    const probes = sink.sends.slice(probesFrom).map(({ atMs }) => atMs)
    for (const [index, atMs] of probes.entries())
      if (index > 0) expect(atMs - (probes[index - 1] ?? 0)).toBeGreaterThan(100)
    sink.answer = () => delivered
    await until('all delivered', async () => (await queues.queue('hook').getCompletedCount()) === 200)
    expect(news.at(-1)).toEqual({ sink: 'hook', state: 'closed', reason: 'delivered' })
    expect(news).toHaveLength(2)
    expect(Math.max(...sink.sends.map(({ number }) => number))).toBeLessThan(5)
    expect((await metrics.circuitOpen.get()).values[0]?.value).toBe(0)
  })

  it('is probed with an alert that would be due in hours when nothing else waits, at no cost to its attempts', async () => {
    const { queues, sender } = bench(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    const running = sender([sink], {
      settings: { retry: { attempts: 2, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000 } },
      tuning: { faultsToOpen: 2, probePauseMsMax: 100 },
    })
    await queues.enqueue(jobs('hook', 1, 2))
    await until('open', () => running.states()[0]?.breaker === 'open')
    // Each has one attempt left: had the probes burnt any, they would be dead by now.
    await until('probes', () => sink.sends.length >= 6)
    expect(await queues.queue('hook').getFailedCount()).toBe(0)
    sink.answer = () => delivered
    await until('both delivered', async () => (await queues.queue('hook').getCompletedCount()) === 2)
  })

  it('does not stop the alerts of a healthy sink because of one that it cannot digest', async () => {
    const { queues, sender } = bench(server, ['hook'])
    const sink = testSink('hook', ({ id }) => (id === 1 ? unavailable : delivered))
    const running = sender([sink], {
      tuning: { faultsToOpen: 2 },
      settings: { retry: { ...slowRetry, maxDelayMs: 150 } },
    })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('given up on', async () => (await queues.queue('hook').getFailedCount()) === 1)
    expect(running.states()[0]?.breaker).toBe('closed')
    await queues.enqueue(jobs('hook', 2, 2))
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
  })
})
