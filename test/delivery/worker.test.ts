import { describe, expect, it, onTestFinished } from 'vitest'
import { noLimit } from '../../src/delivery/settings.ts'
import { given } from '../../src/lib/given.ts'
import type { Batch } from '../../src/sinks/sink.ts'
import { createPauseStore } from '../../src/store/operators/pauses.ts'
import { startRedis, useRedis } from '../support/redis.ts'
import {
  alertRow,
  delivered,
  deliveryJob,
  hang,
  jobs,
  rejected,
  rig,
  testSink,
  unavailable,
  until,
  untilCount,
} from './rig.ts'

const server = useRedis()

/** As Slack's, where the first twenty go out each on its own. */
const shared: Batch = {
  plan: { kind: 'burst', max: 20, after: 20, windowMs: 60_000 },
  split: (parcels) => [[...parcels]],
  send: async () => delivered,
}

describe('a sink that takes everything', () => {
  it('gets each alert once, and the queue keeps the answer as the record', async () => {
    const { queues, sender, attempts, metrics } = rig(server, ['hook'])
    const sink = testSink('hook')
    sender([sink])
    await queues.enqueue(jobs('hook', 1, 250))
    await until('all sent', async () => (await queues.queue('hook').getCompletedCount()) === 250)
    expect(sink.sends.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 250 }, (_, index) => index + 1),
    )
    const job = await queues.queue('hook').getJob('main.7')
    expect(job?.returnvalue).toMatchObject({ number: 1, result: 'delivered', status: 200, text: 'ok' })
    expect(attempts()).toHaveLength(250)
    expect(attempts()[0]).toMatchObject({ sink: 'hook', source: 'main', attempt: 1, result: 'delivered' })
    const { values } = await metrics.sends.get()
    expect(values.find(({ labels }) => labels.result === 'delivered')?.value).toBe(250)
  })

  it.each([
    ['as soon as it is taken', undefined, true],
    ['once all are taken that may be, where they may share a message', shared, false],
  ])('begins with an alert %s', async (_when, batch, isAtOnce) => {
    const { queues, sender } = rig(server, ['hook'])
    const taken: number[] = []
    const all = Promise.withResolvers<void>()
    const sink = testSink('hook', async () => {
      taken.push(await queues.queue('hook').getActiveCount())
      if (taken.length === 20) all.resolve()
      await all.promise
      return delivered
    })
    await queues.enqueue(jobs('hook', 1, 20))
    sender([{ ...sink, ...given({ batch }) }], { settings: { concurrency: 20 } })
    await all.promise
    expect([Math.max(...taken.slice(0, 3)) < 20, taken.at(-1)]).toEqual([isAtOnce, 20])
    expect(sink.sends.map(({ id }) => id)).toEqual(jobs('hook', 1, 20).map(({ alert }) => alert.id))
  })

  it('is not sent what was added again, waiting or delivered', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook')
    await queues.enqueue(jobs('hook', 1, 3))
    await queues.enqueue(jobs('hook', 1, 3))
    sender([sink])
    await until('sent', async () => (await queues.queue('hook').getCompletedCount()) === 3)
    await queues.enqueue(jobs('hook', 1, 4))
    await until('the news is sent', () => sink.sends.some(({ id }) => id === 4))
    expect(sink.sends).toHaveLength(4)
  })

  it('gets one job a target', async () => {
    const { queues, sender } = rig(server, ['desk'])
    const targets = ['a@example.com', 'b@example.com']
    const sink = testSink('desk', () => delivered, targets)
    sender([sink])
    await queues.enqueue(targets.map((target) => deliveryJob('desk', 5, { target })))
    await until('both sent', () => sink.sends.length === 2)
    expect(sink.sends.map(({ target }) => target).sort()).toEqual(['a@example.com', 'b@example.com'])
  })
})

describe('a sink that fails', () => {
  it('is tried again with the next number until it takes the alert', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', ({ number }) => (number < 3 ? unavailable : delivered))
    sender([sink])
    await queues.enqueue(jobs('hook', 1, 1))
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect(sink.sends.map(({ number }) => number)).toEqual([1, 2, 3])
  })

  it('gets as many attempts as the policy allows; then the alert is a dead letter with the reason', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    sender([sink])
    await queues.enqueue(jobs('hook', 1, 1))
    const [job] = await untilCount('dead letters', 1, () => queues.queue('hook').getFailed())
    expect(sink.sends.map(({ number }) => number)).toEqual([1, 2, 3, 4])
    expect(job?.failedReason).toBe('attempts_exhausted: server_error 503 busy')
  })

  it('is not asked again when it refuses for good, and the reason is named once', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => rejected)
    sender([sink])
    await queues.enqueue(jobs('hook', 1, 20))
    const dead = await untilCount('all dead', 20, () => queues.queue('hook').getFailed())
    expect(sink.sends).toHaveLength(20)
    expect(new Set(dead.map(({ failedReason }) => failedReason))).toEqual(new Set(['rejected: 400 no']))
  })

  it('may answer with words that mean something to BullMQ', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const words = ['bullmq:rateLimitExceeded', 'UnrecoverableError', 'DelayedError']
    const sink = testSink('hook', ({ number }) => {
      const text = words[number - 1]
      return text === undefined ? delivered : { ...unavailable, answer: { text } }
    })
    sender([sink])
    await queues.enqueue(jobs('hook', 1, 1))
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect(sink.sends.map(({ number }) => number)).toEqual([1, 2, 3, 4])
  })

  it('may throw what it likes: the alert is tried again and no text of the error is kept or logged', async () => {
    const { queues, sender, redis, prefix, lines } = rig(server, ['hook'])
    const sink = testSink('hook', ({ number }) => {
      if (number > 1) return rejected
      const error = new Error('bullmq:rateLimitExceeded https://hooks.example.com/CANARY')
      error.name = 'UnrecoverableError'
      throw error
    })
    sender([sink])
    await queues.enqueue(jobs('hook', 1, 1))
    await until('dead', async () => (await queues.queue('hook').getFailedCount()) === 1)
    expect(sink.sends).toHaveLength(2)
    const key = `{${prefix}}:queue:hook:main.1`
    const stored = JSON.stringify([await redis.hgetall(key), await redis.lrange(`${key}:logs`, 0, -1)])
    expect(stored).not.toContain('CANARY')
    expect(JSON.stringify(lines)).not.toContain('CANARY')
  })
})

describe('a job that cannot be sent', () => {
  it('expires when the alert is older than the sink wants it, unsent', async () => {
    const { queues, sender, metrics } = rig(server, ['hook'])
    const sink = testSink('hook')
    sender([sink], { settings: { expireAfterMs: 60_000 } })
    await queues.enqueue([deliveryJob('hook', 1, { firedAt: new Date(Date.now() - 61_000).toISOString() })])
    const [job] = await untilCount('dead letters', 1, () => queues.queue('hook').getFailed())
    expect(job?.failedReason).toMatch(/^expired: /)
    expect(sink.sends).toHaveLength(0)
    const { values } = await metrics.sends.get()
    expect(values.map(({ labels, value }) => [labels.result, value])).toEqual([['expired', 1]])
  })

  it('expires unsent, as the failure table says, where a clock so far behind has seen it', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook')
    sender([sink], { settings: { expireAfterMs: 3_600_000 } })
    const seenBehind = (id: number, minutes: number) => ({
      ...deliveryJob('hook', id, { firedAt: new Date().toISOString() }),
      seenAtMs: Date.now() - minutes * 60_000,
    })
    await queues.enqueue([seenBehind(1, 61), seenBehind(2, 59)])
    const [job] = await untilCount('dead letters', 1, () => queues.queue('hook').getFailed())
    expect([job?.id, job?.failedReason]).toEqual(['main.1', expect.stringMatching(/^expired: /)])
    await until('the other is sent', () => sink.sends.length === 1)
    expect(sink.sends.map(({ id }) => id)).toEqual([2])
  })

  it('is a dead letter, and no crash, when its data means nothing', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook')
    sender([sink])
    const data = { v: 9, row: alertRow(1) } as never
    await queues.queue('hook').add('alert', data, { jobId: 'main.1' })
    await queues.enqueue(jobs('hook', 2, 2))
    const failed = () => queues.queue('hook').getFailed()
    await until('both have ended', async () => sink.sends.length === 1 && (await failed()).length === 1)
    expect((await failed())[0]?.failedReason).toMatch(/^unrenderable: /)
  })
})

describe('an acknowledgement that Redis refuses to record', () => {
  it('is recorded within seconds once it is taken, and sent no second time', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.dispose())
    const { queues, sender } = rig(redis, ['hook'])
    const queue = queues.queue('hook')
    const operator = redis.client()
    // All keys but that of the completed jobs: a script that names it is refused before it does anything.
    const others = ['~*[^d]', '~*:delayed', '~*:failed', '~*:stalled', '~*:paused', '~*:prioritized']
    await queue.waitUntilReady()
    const sink = testSink('hook', async () => {
      await operator.call('ACL', 'SETUSER', 'default', 'resetkeys', ...others)
      return delivered
    })
    // The sink's name is stored once more behind the jobs, so no worker may take one and lose its rights before that.
    await queues.enqueue(jobs('hook', 1, 1))
    sender([sink])
    await until('put off', async () => (await operator.zcard(queue.toKey('delayed'))) === 1)
    await operator.call('ACL', 'SETUSER', 'default', 'allkeys')
    await until('recorded', async () => (await queue.getCompletedCount()) === 1, 10_000)
    expect(sink.sends).toHaveLength(1)
  })
})

describe('a sink that asks for patience', () => {
  const patience = { ...unavailable, reason: 'rate_limited' as const, afterMs: 600 }

  it('is left alone for as long as it asked, by all of its queue, and no attempt is burnt', async () => {
    const { queues, sender } = rig(server, ['hook'])
    let refusedAtMs: number | undefined
    const sink = testSink('hook', () => {
      if (refusedAtMs !== undefined) return delivered
      refusedAtMs = Date.now()
      return patience
    })
    sender([sink], { settings: { concurrency: 1 } })
    sender([testSink('hook', sink.answer)], { settings: { concurrency: 1 } })
    await queues.enqueue(jobs('hook', 1, 1))
    // Any send begins a window of the limit, which counts to one; only a hold reaches a limit that no sink has.
    await until('held', async () => (await queues.queue('hook').getRateLimitTtl(noLimit.max)) > 0)
    await queues.enqueue(jobs('hook', 2, 10))
    const done = await untilCount('delivered', 10, () => queues.queue('hook').getCompleted())
    const first = Math.min(...done.map((job) => job.processedOn ?? 0))
    expect(first - (refusedAtMs ?? first)).toBeGreaterThanOrEqual(patience.afterMs)
    expect(done.map((job) => job.returnvalue.number)).toEqual(Array.from({ length: 10 }, () => 1))
  })
})

describe('a rate limit', () => {
  it('holds over all replicas', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook')
    const settings = { rateLimit: { max: 5, per: 400 } }
    sender([sink], { settings })
    sender([sink], { settings })
    await queues.enqueue(jobs('hook', 1, 20))
    await until('all sent', () => sink.sends.length === 20)
    const times = sink.sends.map(({ atMs }) => atMs)
    // Four windows of five: between the first and the last lie three whole windows.
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1_100)
  })
})

describe('pausing', () => {
  it('holds over all replicas and over restarts, until resumed', async () => {
    const { queues, sender, prefix } = rig(server, ['hook', 'other'])
    const [hook, other] = [testSink('hook'), testSink('other')]
    const first = sender([hook, other])
    const pauses = createPauseStore(server.client(), prefix)
    await pauses.pause('hook', { untilMs: null, comment: '' })
    await first.stop(1_000)
    sender([hook, other])
    await queues.enqueue([...jobs('hook', 1, 3), ...jobs('other', 1, 3)])
    await until('the other sink has all', () => other.sends.length === 3)
    expect(hook.sends).toHaveLength(0)
    await pauses.resume('hook')
    await until('sent', () => hook.sends.length === 3)
  })
})

describe('stopping', () => {
  it('lets running sends finish', async () => {
    const { queues, sender } = rig(server, ['hook'])
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const sink = testSink('hook', () => gate.then(() => delivered))
    const running = sender([sink], { settings: { concurrency: 1 } })
    await queues.enqueue(jobs('hook', 1, 2))
    await until('one is on its way', () => sink.sends.length === 1)
    const stopped = running.stop(10_000)
    release()
    await stopped
    expect(await queues.queue('hook').getJobCounts('completed', 'wait')).toEqual({ completed: 1, wait: 1 })
  })

  it('puts aborted sends back with nothing burnt, and the next process sends them', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', hang)
    const first = sender([sink])
    await queues.enqueue(jobs('hook', 1, 3))
    await until('all are on their way', () => sink.sends.length === 3)
    const startMs = Date.now()
    await first.stop(800)
    expect(Date.now() - startMs).toBeLessThan(2_000)
    expect(await queues.queue('hook').getJobCounts('wait', 'active')).toEqual({ wait: 3, active: 0 })
    sink.answer = () => delivered
    sender([sink])
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 3)
    expect(sink.sends.map(({ number }) => number)).toEqual([1, 1, 1, 1, 1, 1])
  })
})

describe('a sink that neither ends its send nor closes', () => {
  it('keeps the stop no longer than its deadline', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const never = new Promise<never>(() => {})
    const sink = testSink('hook', () => never)
    const running = sender([{ ...sink, close: () => never }], { settings: { timeoutMs: 60_000 } })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('on its way', () => sink.sends.length === 1)
    // Far before the send would have to end by itself.
    const late = new Promise((resolve) => setTimeout(resolve, 15_000, 'late'))
    expect(await Promise.race([running.stop(2_500).then(() => 'in time'), late])).toBe('in time')
  })
})

describe('isolation', () => {
  it('keeps one sink as fast beside a dead one as beside a healthy one', async () => {
    const took = async (neighbour: ReturnType<typeof testSink>) => {
      const { queues, sender } = rig(server, ['hook', 'neighbour'])
      const sink = testSink('hook')
      await queues.enqueue([...jobs('neighbour', 1, 500), ...jobs('hook', 1, 500)])
      sender([neighbour, sink])
      const startMs = Date.now()
      await until('all sent', async () => (await queues.queue('hook').getCompletedCount()) === 500)
      return Date.now() - startMs
    }
    // The best of three, in turns: other work on the machine only ever adds, and may come and go.
    const answers = { healthy: undefined, hanging: hang, failing: () => unavailable }
    const best = { healthy: Infinity, hanging: Infinity, failing: Infinity }
    for (let run = 0; run < 3; run++) {
      for (const beside of ['healthy', 'hanging', 'failing'] as const)
        best[beside] = Math.min(best[beside], await took(testSink('neighbour', answers[beside])))
    }
    expect(best.hanging / best.healthy).toBeLessThan(2)
    expect(best.failing / best.healthy).toBeLessThan(2)
  }, 40_000)
})
