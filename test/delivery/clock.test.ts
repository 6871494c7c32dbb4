import { expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { delayOriginsKey } from '../../src/store/keys.ts'
import { wallClock } from '../support/clock.ts'
import { useRedis } from '../support/redis.ts'
import { delivered, hang, jobs, quickSettings, rig, testSink, unavailable, until } from './rig.ts'

const server = useRedis()
const hourMs = 3_600_000

it('a clock that is set back lets waiting alerts go now, at no cost to their attempts when they fail', async () => {
  const { queues, sender, lines } = rig(server, ['hook'])
  const sink = testSink('hook', () => unavailable)
  let aheadMs = 0
  sender([sink], {
    settings: {
      retry: { attempts: 3, initialDelayMs: 12 * hourMs, maxDelayMs: 12 * hourMs },
      expireAfterMs: 48 * hourMs,
    },
    tuning: { watchEveryMs: 50 },
    more: { clock: { ...systemClock, now: () => Date.now() + aheadMs } },
  })
  await queues.enqueue(jobs('hook', 1, 1))
  const waits = (times: number) =>
    until(
      `it waits after ${times} sends`,
      async () => sink.sends.length === times && (await queues.queue('hook').getDelayedCount()) === 1,
    )
  await waits(1)
  aheadMs -= 2 * hourMs
  await waits(2)
  aheadMs -= 2 * hourMs
  await waits(3)
  expect(sink.sends.map(({ number }) => number)).toEqual([1, 2, 2])
  expect(lines.filter(({ msg }) => /set back/.test(String(msg)))).toHaveLength(2)
  sink.answer = () => delivered
  aheadMs -= 2 * hourMs
  await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
})

it('a clock that goes ahead, or back by a moment, changes nothing', async () => {
  const { queues, sender, lines } = rig(server, ['hook'])
  const sink = testSink('hook', () => unavailable)
  let aheadMs = 0
  let looks = 0
  const now = () => {
    looks += 1
    return Date.now() + aheadMs
  }
  sender([sink], {
    settings: {
      retry: { attempts: 3, initialDelayMs: 12 * hourMs, maxDelayMs: 12 * hourMs },
      expireAfterMs: 48 * hourMs,
    },
    tuning: { watchEveryMs: 20 },
    more: { clock: { ...systemClock, now } },
  })
  await queues.enqueue(jobs('hook', 1, 1))
  await until('it waits', async () => (await queues.queue('hook').getDelayedCount()) === 1)
  for (const jumpMs of [hourMs, -2_000]) {
    aheadMs += jumpMs
    const before = looks
    await until('the clock was looked at', () => looks > before + 4)
  }
  expect(sink.sends).toHaveLength(1)
  expect(lines.some(({ msg }) => /set back/.test(String(msg)))).toBe(false)
})

it('a clock that is set back while nobody is there holds up no alert that waits', async () => {
  const { queues, sender, redis, prefix } = rig(server, ['hook'])
  const settings = {
    retry: { attempts: 3, initialDelayMs: 100, maxDelayMs: 200 },
    expireAfterMs: 48 * hourMs,
  }
  const real = Date.now.bind(Date)
  vi.spyOn(Date, 'now').mockImplementation(() => real() + 6 * hourMs)
  // No outage: who comes back from one lets everything go.
  const before = sender([testSink('hook', () => ({ ...unavailable, sinkFault: false }))], { settings })
  await queues.enqueue(jobs('hook', 1, 3))
  await until('they wait', async () => (await queues.queue('hook').getDelayedCount()) === 3)
  await until('it has looked', () => redis.hexists(delayOriginsKey(prefix, 'hook'), 'clock'))
  await before.stop(500)
  vi.restoreAllMocks()
  const after = testSink('hook')
  sender([after], { settings })
  await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 3)
  expect(after.sends.map(({ id }) => id).sort()).toEqual([1, 2, 3])
})

it('a clock that is set back, under Redis too, ends no hold later', async () => {
  const { queues, sender } = rig(server, ['hook'])
  const clock = wallClock()
  const sink = testSink('hook', () => ({ ...unavailable, reason: 'rate_limited' as const, afterMs: 300 }))
  const running = sender([sink], { tuning: { watchEveryMs: 50 }, more: { clock } })
  await queues.enqueue(jobs('hook', 1, 2))
  await until('held', () => running.states()[0]?.heldUntilMs)
  sink.answer = () => delivered
  // As Redis counts it after its clock, too, was set back.
  await server.client().pexpire(queues.queue('hook').toKey('limiter'), 24 * hourMs)
  clock.turn(-24 * hourMs)
  await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 2)
})

it('a clock that is set back or ahead takes no alert from who is sending it', async () => {
  const { queues, sender } = rig(server, ['hook'])
  const sink = testSink('hook', ({ signal }) => hang({ signal }))
  const tuning = { lockMs: 2_000, stalledIntervalMs: 80, watchEveryMs: 80 }
  sender([sink], { tuning, settings: { concurrency: 1 } })
  await queues.enqueue(jobs('hook', 1, 1))
  await until('it is being sent', () => sink.sends.length === 1)
  const other = testSink('hook')
  sender([other], { tuning })
  const lock = `${queues.queue('hook').toKey('main.1')}:lock`
  const real = Date.now.bind(Date)
  onTestFinished(() => {
    vi.restoreAllMocks()
  })
  for (const byMs of [-24 * hourMs, 24 * hourMs]) {
    vi.spyOn(Date, 'now').mockImplementation(() => real() + byMs)
    // Who goes by the wall clock renews no lock after it was set back.
    for (let renewals = 0, leftMs = 0; renewals < 3; renewals += 1) {
      await until('its lock is renewed', async () => {
        const beforeMs = leftMs
        leftMs = await server.client().pttl(lock)
        return leftMs > beforeMs && beforeMs > 0
      })
    }
  }
  expect([sink.sends.length, other.sends.length, sink.sends[0]?.signal.aborted]).toEqual([1, 0, false])
})

it.each(['is stopping', 'sends for a config of before'])(
  'a clock that is set back takes no alert from who %s and is sending it',
  async (state) => {
    const { queues, sender } = rig(server, ['hook'])
    const answer = Promise.withResolvers<Outcome>()
    const sink = testSink('hook', () => answer.promise)
    const tuning = { lockMs: 2_000, stalledIntervalMs: 80, watchEveryMs: 80, takeOverMs: 200 }
    const running = sender([sink], { tuning, settings: { concurrency: 1, timeoutMs: 20_000 } })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('it is being sent', () => sink.sends.length === 1)
    const [other, next] = [testSink('hook'), testSink('hook')]
    sender([other], { tuning })
    const ended =
      state === 'is stopping'
        ? running.stop(20_000)
        : running.swap(new Map([['hook', { sink: next, settings: quickSettings }]]))
    const real = Date.now.bind(Date)
    onTestFinished(() => {
      vi.restoreAllMocks()
    })
    vi.spyOn(Date, 'now').mockImplementation(() => real() - 24 * hourMs)
    const [redis, lock] = [server.client(), `${queues.queue('hook').toKey('main.1')}:lock`]
    for (let renewals = 0, leftMs = 0; renewals < 3 && other.sends.length === 0; ) {
      const beforeMs = leftMs
      leftMs = await redis.pttl(lock)
      if (leftMs > beforeMs && beforeMs > 0) renewals += 1
    }
    answer.resolve(delivered)
    await ended
    await until('recorded', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect([sink.sends.length, other.sends.length, next.sends.length]).toEqual([1, 0, 0])
  },
)
