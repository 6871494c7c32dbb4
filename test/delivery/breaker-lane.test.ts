import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { Circuit } from '../../src/delivery/circuit/circuit.ts'
import { chooseProbe } from '../../src/delivery/circuit/probe.ts'
import type { BreakerChange } from '../../src/delivery/sender.ts'
import { defaultTuning } from '../../src/delivery/settings.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { createSink } from '../../src/sinks/registry.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import { breakerKey } from '../../src/store/keys.ts'
import { createBreakerStore } from '../../src/store/sink/breakers.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { onTestFinished } from '../support/finished.ts'
import { freePort } from '../support/ports.ts'
import { startRedis, useRedis } from '../support/redis.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { delivered, deliveryJob, jobs, quickSettings, rig, testSink, unavailable, until } from './rig.ts'

const server = useRedis()

const slowRetry = { attempts: 5, initialDelayMs: 150, maxDelayMs: 3_600_000 }

describe('a sink that is down', () => {
  it('is left alone but for single probes, and gets everything soon after it is back, nothing burnt beyond its schedule', async () => {
    const { queues, sender, metrics } = rig(server, ['hook'])
    const news: BreakerChange[] = []
    const sink = testSink('hook', () => unavailable)
    const running = sender([sink], {
      settings: { retry: slowRetry, concurrency: 10 },
      tuning: { faultsToOpen: 5, probesARound: 1, probePauseMsMax: 400 },
      more: { onBreaker: (each) => news.push(each) },
    })
    await queues.enqueue(jobs('hook', 1, 200))
    await until('open', () => news.length > 0)
    expect(news).toEqual([{ sink: 'hook', state: 'open', reason: 'server_error: 503 busy' }])
    expect(running.states()).toMatchObject([
      { sink: 'hook', breaker: 'open', reason: 'server_error: 503 busy' },
    ])
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

  it.each([
    ['at the moment when it is found to be down', 0],
    ['while others of its sends have no answer', 3],
  ])('is tried at once where an operator orders it %s', async (_when, late) => {
    const { queues, sender } = rig(server, ['hook'])
    const [allSent, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const all = 5 + late
    const sink = testSink('hook', async ({ id }) => {
      // In the same millisecond it would not be known which of them began before the sink was held.
      if (sink.sends.length === all) setTimeout(allSent.resolve, 20)
      await (id > 5 ? answered : allSent).promise
      return unavailable
    })
    const probed = Promise.withResolvers<boolean>()
    const running = sender([sink], {
      // Without the order it would be tried after ten minutes.
      settings: { retry: { attempts: 5, initialDelayMs: 600_000, maxDelayMs: 600_000 }, concurrency: all },
      tuning: { faultsToOpen: 5, probePauseMsMax: 600_000 },
      more: {
        onBreaker: ({ state }) => {
          sink.answer = () => delivered
          if (state === 'open') probed.resolve(running.probe('hook'))
        },
      },
    })
    await queues.enqueue(jobs('hook', 1, all))
    expect(await probed.promise).toBe(true)
    // Looks for a probe come and go.
    if (late > 0) await new Promise((resolve) => setTimeout(resolve, 500))
    answered.resolve()
    await until('it is tried', () => sink.sends.length > all)
  })

  it.each([
    ['its own alert is answered', 'answered', ['open', 'closed']],
    ['its lane stops', 'stopped', ['open']],
  ] as const)(
    'is told of once where %s while Redis is asked for other processes',
    async (_what, meanwhile, told) => {
      const { queues, redis, prefix, metrics } = rig(server, ['hook'])
      const news: string[] = []
      const asked = Promise.withResolvers<void>()
      const event = (alert: string) => ({ alert, reason: '', startedAtMs: performance.now() })
      const circuit: Circuit = new Circuit({
        ...{ sink: 'hook', settings: { ...quickSettings, rateLimit: { max: 100, per: 1_000 } }, metrics },
        tuning: { ...defaultTuning, faultsToOpen: 1, probePauseMsMax: 100 },
        ...{ queue: queues.queue('hook'), log: createLogger({ level: 'silent' }), clock: systemClock },
        breakers: {
          ...createBreakerStore(redis, prefix),
          async read() {
            if (meanwhile === 'stopped') circuit.stop()
            else await circuit.observe({ signal: 'answered', ...event('1') })
            asked.resolve()
            return undefined
          },
        },
        onBreaker: ({ state }) => news.push(state),
        onHold: async () => {},
        sending: () => 0,
        widthChanged() {},
      })
      onTestFinished(() => circuit.stop())
      for (const alert of ['1', '2']) await circuit.observe({ signal: 'fault', ...event(alert) })
      await asked.promise
      await new Promise((resolve) => setImmediate(resolve))
      expect(news).toEqual(told)
    },
  )

  it('is probed with an alert that would be due in hours when nothing else waits, at no cost to its attempts', async () => {
    const { queues, sender } = rig(server, ['hook'])
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
    const { queues, sender } = rig(server, ['hook'])
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

  it('does not stop its alerts because of one mail that it puts off for each recipient, but does where it is reached for none', async () => {
    const { queues, sender } = rig(server, ['desk'])
    const sink = testSink('desk', () => unavailable)
    const to = ['a@example.com', 'b@example.com', 'c@example.com']
    const retry = { ...slowRetry, maxDelayMs: 150 }
    const running = sender([{ ...sink, targets: to }], { tuning: { faultsToOpen: 2 }, settings: { retry } })
    const mail = (id: number) => queues.enqueue(to.map((target) => deliveryJob('desk', id, { target })))
    await mail(1)
    await until('given up on', async () => (await queues.queue('desk').getFailedCount()) === 3)
    expect(running.states()[0]?.breaker).toBe('closed')
    sink.answer = () => unreached
    await mail(2)
    await until('a rest', () => running.states()[0]?.breaker === 'open')
  })

  it('is known by one alert where nobody listens, and gets it as soon as somebody does', async () => {
    const port = await freePort()
    const { queues, sender } = rig(server, ['hook'])
    const own = { url: `http://127.0.0.1:${port}/`, allowPrivateNetworks: true }
    const sink = createSink('hook', sinkConfigSchema.parse({ type: 'webhook', ...own }), plain)
    onTestFinished(() => sink.close())
    const retry = { attempts: 5, initialDelayMs: 50, maxDelayMs: 3_600_000 }
    const news: string[] = []
    sender([sink], {
      settings: { retry },
      tuning: { faultsToOpen: 3, probesARound: 1, probePauseMsMax: 200 },
      more: { onBreaker: ({ state }) => news.push(state) },
    })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('a rest', () => news.length > 0)
    const receiver = createServer((request, answer) => request.resume().on('end', () => answer.end()))
    receiver.listen(port)
    onTestFinished(() => void receiver.close())
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect(news).toEqual(['open', 'closed'])
  })

  it.each([
    ['a connection', { connect: () => busy }],
    ['the sender', { mailFrom: () => busy }],
  ] as const)(
    'is known by one mail to several where it puts off %s, which comes before the mail',
    async (_, script) => {
      const smtp = await startSmtpReceiver()
      onTestFinished(() => smtp.stop())
      smtp.script(script)
      const { queues, sender } = rig(server, ['desk'])
      const to = ['a@example.com', 'b@example.com', 'c@example.com']
      const own = { smtp: smtp.url, from: 'alerts@example.com', to, allowPrivateNetworks: true }
      const sink = createSink('desk', sinkConfigSchema.parse({ type: 'email', ...own }), plain)
      onTestFinished(() => sink.close())
      const running = sender([sink], { tuning: { faultsToOpen: 2 }, settings: { retry: slowRetry } })
      await queues.enqueue(to.map((target) => deliveryJob('desk', 1, { target })))
      await until('a rest', () => running.states()[0]?.breaker === 'open')
    },
  )
})

const plain = { display: { timeZone: 'Asia/Tehran', calendar: 'both', language: 'en' } } as const
const busy = { code: 421, text: '4.3.2 Service not available' }

const unreached: Outcome = { kind: 'retry', reason: 'connect', sinkFault: true, answer: { text: 'refused' } }

describe('a sink that is down when a process ends', () => {
  const hourly = { attempts: 5, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000 }

  it('is probed by the next process, which sends everything at once when it is back', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    const setup = { settings: { retry: hourly }, tuning: { faultsToOpen: 5, probePauseMsMax: 100 } }
    const first = sender([sink], setup)
    await queues.enqueue(jobs('hook', 1, 9))
    await until('open', () => first.states()[0]?.breaker === 'open')
    await until('all were tried', () => new Set(sink.sends.map(({ id }) => id)).size === 9)
    const { openSinceMs } = first.states()[0] ?? {}
    await first.stop()
    sink.answer = () => delivered
    const news: BreakerChange[] = []
    const states: unknown[] = []
    const next = sender([sink], {
      ...setup,
      more: {
        onBreaker: (each) => {
          news.push(each)
          states.push(next.states()[0])
        },
      },
    })
    await until('it knows', () => news.length > 0)
    expect(states[0]).toMatchObject({ breaker: 'open', openSinceMs, reason: 'server_error: 503 busy' })
    await until('all delivered', async () => (await queues.queue('hook').getCompletedCount()) === 9)
    expect(news.map(({ state }) => state)).toEqual(['open', 'closed'])
    // And whoever starts after that knows nothing of it.
    const third = sender([sink], setup)
    await queues.enqueue(jobs('hook', 10, 10))
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 10)
    expect(third.states()[0]?.breaker).toBe('closed')
  })

  it('is known to the next process though no probe of this one has failed', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    // A probe would come in a minute.
    const setup = { settings: { retry: hourly }, tuning: { faultsToOpen: 3 } }
    const first = sender([sink], setup)
    await queues.enqueue(jobs('hook', 1, 3))
    await until('open', () => first.states()[0]?.breaker === 'open')
    await first.stop()
    expect(sink.sends).toHaveLength(3)
    const next = sender([sink], setup)
    await until('it knows', () => next.states()[0]?.breaker === 'open')
    expect(sink.sends).toHaveLength(3)
  })

  it('is found out of by a process that runs beside it and met no fault', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    const settings = { retry: hourly }
    const dying = sender([sink], { settings, tuning: { faultsToOpen: 5, probePauseMsMax: 100 } })
    await queues.enqueue(jobs('hook', 1, 9))
    await until('all were tried', () => new Set(sink.sends.map(({ id }) => id)).size === 9)
    const patient = { faultsToOpen: 1_000, probePauseMsMax: 100, watchEveryMs: 50 }
    const living = sender([sink], { settings, tuning: patient })
    await until('it knows', () => living.states()[0]?.breaker === 'open')
    sink.answer = () => delivered
    await dying.stop()
    await until('all delivered', async () => (await queues.queue('hook').getCompletedCount()) === 9)
    expect(living.states()[0]?.breaker).toBe('closed')
  })

  it('is known to be back where a probe is ordered of a process that did not send the last alert, though none is left to send', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    // By itself a process would look again after ten minutes.
    const setup = { settings: { retry: hourly }, tuning: { faultsToOpen: 3, probePauseMsMax: 600_000 } }
    const both = [sender([sink], setup)]
    const isOpen = (each: (typeof both)[number]) => each.states()[0]?.breaker === 'open'
    await queues.enqueue(jobs('hook', 1, 3))
    const queue = queues.queue('hook')
    await until('open', async () => both.every(isOpen) && (await queue.getDelayedCount()) === 3)
    for (const id of ['main.1', 'main.2']) await queue.remove(id)
    both.push(sender([sink], setup))
    await until('the second knows', () => both.every(isOpen))
    sink.answer = () => delivered
    await both[0]?.probe('hook')
    await until('one knows that it is back', () => !both.every(isOpen))
    const [other] = both.filter(isOpen)
    await expect(other?.probe('hook')).rejects.toThrow('No alert for hook is due')
    await until('both know', () => !both.some(isOpen))
  })
})

it('a sink that is back is not taken for down again by what Redis had stored, where that comes back without its last second', async () => {
  const own = await startRedis()
  onTestFinished(() => own.dispose())
  const client = own.client()
  const { queues, sender, prefix } = rig(own, ['hook'])
  const sink = testSink('hook', () => unavailable)
  const news: string[] = []
  sender([sink], {
    settings: { retry: slowRetry, timeoutMs: 100 },
    tuning: { faultsToOpen: 2, probePauseMsMax: 100, watchEveryMs: 50 },
    more: { onBreaker: ({ state }) => news.push(state) },
  })
  const stored = () => client.exists(breakerKey(prefix, 'hook'))
  await queues.enqueue(jobs('hook', 1, 3))
  await until('it is stored', async () => (await stored()) === 1)
  await client.save()
  sink.answer = () => delivered
  await until('all delivered', async () => (await queues.queue('hook').getCompletedCount()) === 3)
  await until('it is stored no more', async () => (await stored()) === 0)
  await own.kill9()
  await own.start()
  await until('it is ended once more', async () => (await stored().catch(() => 1)) === 0)
  expect(news).toEqual(['open', 'closed'])
})

describe('alerts that a sink cannot digest', () => {
  const setup = {
    settings: { retry: { attempts: 5, initialDelayMs: 50, maxDelayMs: 3_600_000 }, concurrency: 2 },
    tuning: { faultsToOpen: 3, probePauseMsMax: 60 },
  }

  it('do not hide for long that it takes the others, wherever those wait', async () => {
    for (const healthy of [33, 20]) {
      const { queues, sender } = rig(server, ['hook'])
      const sink = testSink('hook', ({ id }) => (id === healthy ? delivered : unavailable))
      await queues.enqueue(jobs('hook', 1, 33))
      sender([sink], setup)
      await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
      // One by one from the front it would be the 33rd, or the 20th.
      if (healthy === 33) expect(sink.sends.findIndex(({ id }) => id === healthy)).toBeLessThan(12)
    }
  })

  it.each([
    ['that was tried goes before it', 4, ['5']],
    ['was not tried', 5, ['1', '2', '3', '4', '5']],
  ])('are not taken for the newest where one %s', async (_what, newest, tried) => {
    const { queues, redis } = rig(server, ['hook'])
    const queue = queues.queue('hook')
    await queues.enqueue(jobs('hook', 1, 5))
    // What is due again is put where the newest are.
    for (const id of tried) await redis.hset(queue.toKey(`main.${id}`), 'atm', 1)
    await chooseProbe(queue, 1)
    expect(await redis.lindex(queue.toKey('wait'), -1)).toBe(`main.${newest}`)
  })

  it('are not the only probe because they are due first', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    const retry = { attempts: 5, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000 }
    sender([sink], { ...setup, settings: { retry, concurrency: 1 } })
    await queues.enqueue(jobs('hook', 1, 6))
    await until('all were tried', () => new Set(sink.sends.map(({ id }) => id)).size === 6)
    sink.answer = ({ id }) => (id < 6 ? unavailable : delivered)
    await until('one is delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
  })
})

describe('a sink that is back', () => {
  it('gets one alert at a time first, and twice as many after each answer', async () => {
    const { queues, sender } = rig(server, ['hook'])
    let running = 0
    let most = 0
    const width: number[] = []
    let answer: Outcome = unavailable
    const allRun = Promise.withResolvers<void>()
    const sink = testSink('hook', async () => {
      // A probe that began before the sink was well is refused, also when it ends later.
      const given = answer
      running += 1
      most = Math.max(most, running)
      if (given === delivered) width.push(running)
      // However slowly the lane takes them, none ends before all that may run do.
      if (most === 20) allRun.resolve()
      else if (given !== delivered) await allRun.promise
      await new Promise((resolve) => setTimeout(resolve, 20))
      running -= 1
      return given
    })
    const lane = sender([sink], {
      settings: { retry: slowRetry, concurrency: 20 },
      tuning: { faultsToOpen: 20, probePauseMsMax: 200 },
    })
    await queues.enqueue(jobs('hook', 1, 100))
    await until('open', () => lane.states()[0]?.breaker === 'open')
    expect(most).toBe(20)
    // Also none that was taken before the breaker opened, and is not with the sink yet.
    const active = () => queues.queue('hook').getActiveCount()
    await until('nothing is on its way', async () => (await active()) === 0 && running === 0)
    answer = delivered
    await until('all delivered', async () => (await queues.queue('hook').getCompletedCount()) === 100)
    expect(width.slice(0, 2)).toEqual([1, 1])
    expect(Math.max(...width.slice(0, 4))).toBeLessThanOrEqual(2)
    expect(Math.max(...width)).toBeGreaterThan(10)
  })
})
