import { expect, it } from 'vitest'
import type { Finding } from '../../src/admin/views/status-view.ts'
import type { DeliveryJob } from '../../src/alert/job.ts'
import { noticeMaker } from '../../src/app/notices/notice-sender.ts'
import { createOperators } from '../../src/app/notices/operators.ts'
import { createQueues } from '../../src/delivery/queue/queues.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { connectRedis } from '../../src/store/connection/redis.ts'
import { createNoticeStore } from '../../src/store/operators/notices.ts'
import { pollerStatusSchema } from '../../src/store/source/source-status.ts'
import { noting } from '../support/asked.ts'
import { clockAt, passingClock } from '../support/clock.ts'
import { onTestFinished } from '../support/finished.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, replaceServer, startRedis, useRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const redis = useRedis()

type OperatorsOptions = Parameters<typeof createOperators>[0]

interface Told
  extends Pick<OperatorsOptions, 'store' | 'clock'>,
    Partial<Omit<OperatorsOptions, 'store' | 'clock'>> {
  /** Sinks that are told, in place of `desk`. */
  readonly desks?: readonly string[]
  readonly enqueue: (jobs: readonly DeliveryJob[]) => Promise<void>
  readonly failedSince?: (sink: string, sinceMs: number) => Promise<number>
  readonly completedSince?: (sink: string, sinceMs: number) => Promise<number>
}

/** The operators of a bridge without sources, whose sinks are those that have a breaker. */
function operatorsOf({
  desks = ['desk'],
  enqueue,
  failedSince = async () => 0,
  completedSince = async () => 0,
  ...given
}: Told) {
  const { breakers = () => [] } = given
  const sinks = breakers().map(({ sink }) => sink)
  const counts = { failingSince: async () => new Set(sinks), failedSince, completedSince }
  const queues = { sinks, enqueue, ...counts }
  const active = { operators: desks, queues, targets: new Map(), timeZone: 'UTC' }
  return createOperators({
    active: () => active,
    sources: async () => [],
    findings: async () => undefined,
    kept: async (downHere) => downHere,
    log: captureLog().log,
    ...given,
    breakers,
  })
}

/** The operators of a bridge whose sink `hook` is down, and what they were told of it, by kind. */
function outageOf(clock: OperatorsOptions['clock']) {
  const told: string[] = []
  let breaker: 'open' | 'closed' = 'open'
  const operators = operatorsOf({
    enqueue: async (jobs: readonly DeliveryJob[]) => void told.push(...jobs.map(({ alert }) => alert.kind)),
    breakers: () => [{ sink: 'hook', breaker, reason: 'HTTP 503' }],
    store: createNoticeStore(redis.client(), freshPrefix()),
    clock,
  })
  const recover = () => {
    breaker = 'closed'
    operators.onBreaker({ sink: 'hook', state: 'closed', reason: '' })
  }
  return { operators, told, recover }
}

it('a sink whose breaker closes is told to be well after a while, also where nothing waits to be sent', async () => {
  const clock = passingClock()
  const { operators, told, recover } = outageOf(clock)
  startOperators(operators)
  await until('the outage is told', () => told.length === 1)
  recover()
  await until('the recovery is told', () => {
    clock.pass(5_000)
    return told.length === 2
  })
  expect(told).toEqual(['bridge.sink_down', 'bridge.sink_up'])
})

/** One whose wall time is set while its monotonic time goes on. */
function settableClock(base = passingClock()) {
  let aheadMs = 0
  return {
    ...base,
    now: () => base.now() + aheadMs,
    turn(byMs: number) {
      aheadMs += byMs
    },
  }
}

it('two replicas whose clocks differ by more than a day tell of an outage once, and of its end once', async () => {
  const prefix = freshPrefix()
  /** Each replica may put a notice into its queue, under the same id. */
  const notices = new Map<number, string>()
  const told = () => [...notices.values()]
  let breaker: 'open' | 'closed' = 'open'
  const base = passingClock()
  const looks = [0, 0]
  const replicas = looks.map((_, at) => {
    const clock = settableClock(base)
    clock.turn(at * 25 * 3_600_000)
    return operatorsOf({
      async enqueue(jobs: readonly DeliveryJob[]) {
        for (const { alert } of jobs) notices.set(alert.id, alert.kind)
      },
      breakers: () => [{ sink: 'hook', breaker, reason: 'HTTP 503' }],
      async sources() {
        looks[at] = (looks[at] ?? 0) + 1
        return []
      },
      store: createNoticeStore(redis.client(), prefix),
      clock,
    })
  })
  for (const operators of replicas) startOperators(operators)
  const looked = (count: number) =>
    until('both have looked', () => {
      base.pass(5_000)
      return looks.every((each) => each >= count)
    })
  await looked(6)
  expect(told()).toEqual(['bridge.sink_down'])
  breaker = 'closed'
  for (const operators of replicas) operators.onBreaker({ sink: 'hook', state: 'closed', reason: '' })
  await looked(Math.max(...looks) + 30)
  expect(told()).toEqual(['bridge.sink_down', 'bridge.sink_up'])
})

it('a recovery is told after a minute, though the clock was hours ahead when the outage began', async () => {
  const clock = settableClock()
  const { operators, told, recover } = outageOf(clock)
  clock.turn(5 * 3_600_000)
  startOperators(operators)
  await until('the outage is told', () => told.length === 1)
  clock.turn(-5 * 3_600_000)
  recover()
  await until('the recovery is told', () => {
    clock.pass(5_000)
    return told.length === 2
  })
  expect(told).toEqual(['bridge.sink_down', 'bridge.sink_up'])
})

it('dead letters are told, though the last notice of some was made while the clock was hours ahead', async () => {
  const told: string[] = []
  const store = createNoticeStore(redis.client(), freshPrefix())
  await store.move('hook', Date.now() + 5 * 3_600_000)
  const operators = operatorsOf({
    enqueue: async (jobs: readonly DeliveryJob[]) =>
      void told.push(...jobs.map(({ alert }) => alert.headline)),
    failedSince: async (_sink, sinceMs) => (sinceMs < Date.now() ? 2 : 0),
    breakers: () => [{ sink: 'hook', breaker: 'closed', reason: '' }],
    store,
    clock: passingClock(),
  })
  startOperators(operators)
  await until('they are told', () => told.length > 0)
  expect(told).toEqual(['2 alerts were given up on at sink hook'])
})

it('a sink that another replica found well is not told to be down by one that was frozen since', async () => {
  const clock = passingClock()
  const told: string[] = []
  let kept: unknown
  let looks = 0
  const operators = operatorsOf({
    enqueue: async (jobs: readonly DeliveryJob[]) => void told.push(...jobs.map(({ alert }) => alert.kind)),
    breakers: () => [{ sink: 'hook', breaker: 'open', reason: 'HTTP 503' }],
    async kept(sinks) {
      looks += 1
      return sinks.map(() => kept)
    },
    store: createNoticeStore(redis.client(), freshPrefix()),
    clock,
  })
  startOperators(operators)
  await until('it has looked', () => {
    clock.pass(5_000)
    return looks > 20
  })
  expect(told).toEqual([])
  kept = { reason: 'HTTP 503' }
  await until('the outage is told', () => {
    clock.pass(5_000)
    return told.length > 0
  })
  expect(told).toEqual(['bridge.sink_down'])
})

it('what the verdict names as a trouble is told in its words once it lasts, but not to its own sink, and when it is over', async () => {
  const clock = passingClock()
  const told: string[] = []
  const text = 'Sink hook is too slow: 8,929 wait'
  let findings: Pick<Finding, 'text' | 'trouble'>[] = [{ text, trouble: 'late:hook' }]
  let looks = 0
  const operators = operatorsOf({
    desks: ['desk', 'hook'],
    enqueue: async (jobs: readonly DeliveryJob[]) =>
      void told.push(...jobs.map(({ sink, alert }) => `${sink}: ${alert.headline}`)),
    completedSince: async () => 1,
    async findings() {
      looks += 1
      return { findings, troubles: ['thin:main', 'late:hook'] }
    },
    store: createNoticeStore(redis.client(), freshPrefix()),
    clock,
  })
  startOperators(operators)
  const looked = (count: number) =>
    until('it has looked', () => {
      clock.pass(5_000)
      return looks >= count
    })
  await looked(1)
  expect(told).toEqual([])
  await looked(4)
  expect(told).toEqual([`desk: ${text}`])
  findings = []
  await looked(8)
  expect(told).toEqual([`desk: ${text}`, 'desk: Sink hook is fast enough again'])
})

it.each([
  {
    what: 'refuses everything',
    where: 'its dead letters are dropped',
    trouble: 'refuses:hook',
    text: 'Sink hook refuses everything: the last 5 alerts were given up on',
    over: 'Sink hook does not refuse everything any more',
  },
  {
    what: 'puts everything off',
    where: 'all that it put off is given up on',
    trouble: 'late:hook',
    text: 'Sink hook puts everything off: 3 wait for another attempt, one of them for 40m',
    over: 'Sink hook is fast enough again',
  },
])('that a sink $what is over once it acknowledges something, not where $where', async (each) => {
  const { trouble, text, over } = each
  const clock = passingClock()
  const told: string[] = []
  let findings: Pick<Finding, 'text' | 'trouble'>[] = [{ text, trouble }]
  let acknowledgedMs = Date.now() - 60_000
  let looks = 0
  const operators = operatorsOf({
    enqueue: async (jobs: readonly DeliveryJob[]) =>
      void told.push(...jobs.map(({ alert }) => alert.headline)),
    completedSince: async (_sink, sinceMs) => (acknowledgedMs >= sinceMs ? 1 : 0),
    async findings() {
      looks += 1
      return { findings, troubles: [trouble] }
    },
    store: createNoticeStore(redis.client(), freshPrefix()),
    clock,
  })
  startOperators(operators)
  const lookedTwice = async (before = looks) =>
    until('it has looked', () => {
      clock.pass(5_000)
      return looks > before + 2
    })
  await until('it is told', () => {
    clock.pass(5_000)
    return told.length > 0
  })
  findings = []
  await lookedTwice()
  expect(told).toEqual([text])
  acknowledgedMs = Date.now() + 60_000
  await until('the end is told', () => {
    clock.pass(5_000)
    return told.length > 1
  })
  expect(told).toEqual([text, over])
})

it('a look at 50 sinks of which none has failed asks Redis for three things, and for one more once a minute', async () => {
  const clock = passingClock()
  const sinks = Array.from({ length: 50 }, (_, at) => `sink-${at}`)
  const asked: string[] = []
  const client = noting(redis.client(), asked)
  const queuesRedis = connectRedis({ target: { url: redis.url }, profile: 'commands' }, captureLog().log)
  onTestFinished(() => queuesRedis.disconnect())
  await until('connected', () => queuesRedis.status === 'ready')
  const stored = createQueues({ redis: queuesRedis, prefix: freshPrefix(), sinks })
  onTestFinished(() => stored.close())
  const counted =
    <T>(name: string, work: (sink: string, sinceMs: number) => Promise<T>) =>
    (sink: string, sinceMs: number) => {
      asked.push(name)
      return work(sink, sinceMs)
    }
  const queues = {
    ...stored,
    failingSince(sinceMs: number) {
      asked.push('failingSince')
      return stored.failingSince(sinceMs)
    },
    failedSince: counted('failedSince', stored.failedSince),
    completedSince: counted('completedSince', stored.completedSince),
  }
  const active = { operators: ['desk'], queues, targets: new Map(), timeZone: 'UTC' }
  const status = statusOf(clock.now() + 86_400_000)
  let looks = 0
  const operators = createOperators({
    active: () => active,
    async sources() {
      looks += 1
      return [{ status, quarantine: { quarantined: 0, ever: 0, fellOut: 0 } }]
    },
    findings: async () => ({ findings: [], troubles: sinks.map((sink) => `late:${sink}`) }),
    breakers: () => [],
    kept: async () => [],
    store: createNoticeStore(client, freshPrefix()),
    clock,
    log: captureLog().log,
  })
  startOperators(operators)
  await until('it has looked for a minute', () => {
    clock.pass(10_000)
    return looks > 6
  })
  const most: Readonly<Record<string, number>> = { failingSince: looks, mget: looks + 1, hgetall: looks }
  const times = Object.groupBy(asked, (name) => name)
  expect(Object.entries(times).filter(([name, all = []]) => all.length > (most[name] ?? 0))).toEqual([])
})

it('what two replicas tell in the same millisecond are two notices', async () => {
  const store = createNoticeStore(redis.client(), freshPrefix())
  const ids: number[] = []
  for (const sink of ['hook', 'mail'])
    operatorsOf({
      enqueue: async (jobs: readonly DeliveryJob[]) => void ids.push(...jobs.map(({ alert }) => alert.id)),
      store,
      clock: clockAt(() => 1_795_000_000_000),
    }).onBreaker({ sink, state: 'open', reason: 'HTTP 503' })
  await until('both are told', () => new Set(ids).size === 2)
  expect(ids.every(Number.isSafeInteger)).toBe(true)
})

it('while Redis flaps, each notice is sent once: down, up, and how many were given up on', async () => {
  const clock = passingClock()
  const told = new Map<number, string>()
  let breaker: 'open' | 'closed' = 'open'
  let calls = 0
  /** The connection breaks before a call, or after it was carried out and before its answer comes. */
  const flapping = async <T>(work: () => Promise<T>): Promise<T> => {
    calls += 1
    const fate = Math.floor((Math.sin(calls) + 1) * 3.5)
    if (fate === 2) throw new Error('Connection is closed.')
    const answer = await work()
    if (fate === 1) throw new Error('Connection is closed.')
    return answer
  }
  const client = redis.client()
  const flappingClient = new Proxy(client, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function'
        ? (...given: unknown[]) => flapping(() => value.apply(target, given))
        : value
    },
  })
  const queues = {
    enqueue: (jobs: readonly DeliveryJob[]) =>
      flapping(async () => {
        for (const { alert } of jobs) told.set(alert.id, `${alert.kind} ${alert.headline}`)
      }),
    failedSince: async (_sink: string, sinceMs: number) => (sinceMs < startMs ? 3 : 0),
  }
  const startMs = clock.now()
  const operators = operatorsOf({
    ...queues,
    breakers: () => [{ sink: 'hook', breaker, reason: 'HTTP 503' }],
    store: createNoticeStore(flappingClient, freshPrefix()),
    clock,
  })
  startOperators(operators)
  await until('both troubles are told', () => {
    clock.pass(5_000)
    return told.size === 2
  })
  breaker = 'closed'
  operators.onBreaker({ sink: 'hook', state: 'closed', reason: '' })
  await until('the recovery is told', () => {
    clock.pass(5_000)
    return told.size === 3
  })
  const looks = calls
  await until('more looks', () => {
    clock.pass(5_000)
    return calls > looks + 20
  })
  expect([...told.values()].sort()).toEqual([
    'bridge.dead_letters 3 alerts were given up on at sink hook',
    'bridge.sink_down Sink hook does not take alerts',
    'bridge.sink_up Sink hook takes alerts again',
  ])
})

it('a queue that refuses a notice, and a sink whose records cannot be counted, hold up no other notice', async () => {
  const told: string[] = []
  const queues = {
    enqueue: async (jobs: readonly DeliveryJob[]) => {
      if (jobs.some(({ sink }) => sink === 'refusing')) throw new Error('WRONGTYPE Operation against a key')
      told.push(...jobs.map(({ sink, alert }) => `${sink}: ${alert.headline}`))
    },
    failedSince: async (sink: string) => {
      if (sink === 'torn') throw new Error('WRONGTYPE Operation against a key')
      return 0
    },
  }
  const store = createNoticeStore(redis.client(), freshPrefix())
  const operators = operatorsOf({
    desks: ['refusing', 'desk'],
    ...queues,
    breakers: () => ['torn', 'hook'].map((sink) => ({ sink, breaker: 'open' as const, reason: 'HTTP 503' })),
    store,
    clock: passingClock(),
    lookEveryMs: 20,
  })
  const renamed = operators.renamed('old', 'new')
  if (renamed !== undefined) await store.begin('renamed', { againMs: 0, notice: renamed })
  startOperators(operators)
  await until('desk is told of all', () => told.length >= 3)
  expect(told.sort()).toEqual([
    'desk: Sink hook does not take alerts',
    'desk: Sink torn does not take alerts',
    'desk: Source new goes on with the data of source old',
  ])
})

it('a trouble that begins while no answer of Redis comes is told before its end, and an orphan is told later', async () => {
  const clock = passingClock()
  const told: string[] = []
  let breaker: 'open' | 'closed' = 'open'
  let lost = 0
  const client = redis.client()
  /** Scripts are carried out, and their answers are lost. */
  const deaf = new Proxy(client, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return async (...given: unknown[]) => {
        const answer: unknown = await value.apply(target, given)
        const isEnd = String(given[0]).includes('ended ')
        const isSending = name !== 'eval' || /^return|run_id/.test(String(given[0]))
        if (isSending || (breaker === 'closed' && (!isEnd || lost > 2))) return answer
        lost += 1
        throw new Error('Connection is closed.')
      }
    },
  })
  const operators = operatorsOf({
    enqueue: async (jobs: readonly DeliveryJob[]) =>
      void told.push(...jobs.map(({ alert }) => alert.headline)),
    breakers: () => [{ sink: 'hook', breaker, reason: 'HTTP 503' }],
    store: createNoticeStore(deaf, freshPrefix()),
    clock,
  })
  operators.onOrphan({ kind: 'source', name: 'old', rows: 1, held: 0, quarantined: 0, lastPollAt: null })
  operators.onBreaker({ sink: 'hook', state: 'open', reason: 'HTTP 503' })
  await until('both answers are lost', () => lost === 2)
  breaker = 'closed'
  operators.onBreaker({ sink: 'hook', state: 'closed', reason: '' })
  startOperators(operators)
  await until('the recovery is told', () => {
    clock.pass(5_000)
    return told.some((each) => each.includes('again'))
  })
  expect(told).toEqual([
    'Source old is not in the config any more',
    'Sink hook does not take alerts',
    'Sink hook takes alerts again',
  ])
})

it('a source that no process polls is told after a quarter of an hour, and when one polls it again', async () => {
  const clock = passingClock()
  const told: string[] = []
  let looks = 0
  /** As the process that polled has left it: the next poll is due, and does not come. */
  let nextPollAtMs = clock.now()
  const operators = operatorsOf({
    enqueue: async (jobs: readonly DeliveryJob[]) =>
      void told.push(...jobs.map(({ alert }) => `${alert.headline}: ${alert.why}`)),
    sources: async () => {
      looks += 1
      return [{ status: statusOf(nextPollAtMs), quarantine: undefined }]
    },
    store: createNoticeStore(redis.client(), freshPrefix()),
    clock,
  })
  startOperators(operators)
  const passMinutes = async (minutes: number) => {
    for (let done = 0; done < minutes * 2; done += 1) {
      const before = looks
      await until('it sleeps', () => clock.sleepers() > 0)
      clock.pass(30_000)
      await until('a look', () => looks > before)
    }
  }
  // The clock of the process that polls is two minutes behind ours.
  for (let minute = 0; minute < 18; minute += 1) {
    nextPollAtMs = clock.now() - 120_000
    await passMinutes(1)
  }
  await passMinutes(13)
  expect(told).toEqual([])
  await passMinutes(5)
  expect(told).toEqual([
    expect.stringMatching(
      /^Source main cannot be read: no process polls it: it should have polled (1[5-9]|2\d)m.* ago$/,
    ),
  ])
  nextPollAtMs = clock.now() + 60_000
  await passMinutes(1)
  expect(told.slice(1)).toEqual([expect.stringMatching(/^Source main is polled again/)])
})

it('what a process that was killed had begun to tell is told by another, once, with the same id', async () => {
  const prefix = freshPrefix()
  const clock = passingClock()
  const told: DeliveryJob[] = []
  let breaker: 'open' | 'closed' = 'open'
  let deadAtMs = clock.now()
  /** Each process dies where its nth notice goes to the queues, before it is there or after. */
  const start = (diesAt: number, isStored = false) => {
    let notices = 0
    const queues = {
      enqueue: async (jobs: readonly DeliveryJob[]) => {
        notices += 1
        if (notices < diesAt || isStored) told.push(...jobs)
        if (notices >= diesAt) await new Promise(() => {})
      },
      failedSince: async (_sink: string, sinceMs: number) => (sinceMs <= deadAtMs ? 3 : 0),
    }
    const operators = operatorsOf({
      ...queues,
      breakers: () => [{ sink: 'hook', breaker, reason: 'HTTP 503' }],
      store: createNoticeStore(redis.client(), prefix),
      clock,
    })
    const ending = new AbortController()
    void operators.run(ending.signal)
    onTestFinished(() => ending.abort())
    return { operators, died: () => until('it dies', () => notices >= diesAt) }
  }
  const kinds = () => [...new Map(told.map(({ alert }) => [alert.id, alert.kind])).values()]
  await start(1).died()
  expect(kinds()).toEqual([])
  await start(2, true).died()
  expect(kinds()).toEqual(['bridge.sink_down', 'bridge.dead_letters'])
  breaker = 'closed'
  deadAtMs = 0
  const third = start(2)
  third.operators.onBreaker({ sink: 'hook', state: 'closed', reason: '' })
  await until('no replica finds it failing', async () => {
    clock.pass(5_000)
    return (await createNoticeStore(redis.client(), prefix).since('breaker:hook')) === undefined
  })
  await third.died()
  start(9)
  await until('the recovery is told', () => kinds().length === 3)
  expect(kinds()).toEqual(['bridge.sink_down', 'bridge.dead_letters', 'bridge.sink_up'])
  for (const { alert, seenAtMs } of told) expect(alert.firedAtMs).toBe(seenAtMs)
})

function statusOf(nextPollAtMs: number) {
  return pollerStatusSchema.parse({
    ...{ v: 1, source: 'main', state: 'waiting', reason: '', sinceMs: 0, behind: false, lastError: null },
    ...{ lastPollAtMs: 0, lastOkAtMs: 0, nextPollAtMs, nextReason: null, lastCompleteWalkAtMs: 0 },
    ...{ unitsUsed: 0, unitsPerDay: 2_000, dayStartMs: 0, resetsAtMs: 0 },
  })
}

function startOperators(operators: ReturnType<typeof createOperators>): void {
  const ending = new AbortController()
  const running = operators.run(ending.signal)
  onTestFinished(() => {
    ending.abort()
    return running
  })
}

it('a notice whose job Redis may have lost while it was away is put into its queue again', async () => {
  const clock = passingClock()
  const ids: number[] = []
  const store = createNoticeStore(redis.client(), freshPrefix())
  let isAway = true
  const operators = operatorsOf({
    enqueue: async (jobs: readonly DeliveryJob[]) => void ids.push(...jobs.map(({ alert }) => alert.id)),
    store: {
      ...store,
      // The server dies once it has the job: its replica has the notice, but not the job.
      async remove(id, server) {
        if (!isAway) return store.remove(id, server)
        isAway = false
        throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
      },
    },
    clock,
  })
  operators.onBreaker({ sink: 'hook', state: 'open', reason: 'HTTP 503' })
  startOperators(operators)
  await until('it is not stored as unsent any more', async () => {
    clock.pass(5_000)
    return !isAway && (await store.unsent()).length === 0
  })
  expect(ids).toHaveLength(2)
  expect(new Set(ids).size).toBe(1)
})

it('a notice stays unsent where another Redis answers than the one that its job was stored at', async () => {
  const own = await startRedis({ aof: 'always' })
  onTestFinished(() => own.dispose())
  const client = own.client()
  const clock = passingClock()
  let ids: number[] = []
  const store = createNoticeStore(client, freshPrefix())
  let isReplaced = false
  const enqueue = async (jobs: readonly DeliveryJob[]) => {
    ids.push(...jobs.map(({ alert }) => alert.id))
    if (isReplaced) return
    await replaceServer(own, client)
    // It is back without its last second.
    ids = []
    isReplaced = true
  }
  const operators = operatorsOf({
    enqueue,
    store,
    clock,
  })
  operators.onBreaker({ sink: 'hook', state: 'open', reason: 'HTTP 503' })
  startOperators(operators)
  await until('it is not stored as unsent any more', async () => {
    clock.pass(5_000)
    return isReplaced && (await store.unsent()).length === 0
  })
  expect(ids).toHaveLength(1)
})

it('the times of a notice are on the clock of the zone', () => {
  const text = 'Another config is in force: web-2, process 9, running since 2026-11-21T12:00:00.000Z (all)'
  const notice = { kind: 'trouble', trouble: 'configs', text } as const
  expect(noticeMaker(systemClock, () => 'Asia/Tehran')(notice).row).toMatchObject({
    headline: text.replace('12:00:00.000Z', '15:30:00+03:30'),
  })
})
