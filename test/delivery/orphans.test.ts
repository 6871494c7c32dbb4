import { describe, expect, it } from 'vitest'
import { createOrphans } from '../../src/delivery/orphans/orphans.ts'
import { createJobFields } from '../../src/delivery/queue/job-fields.ts'
import { replaceJob } from '../../src/delivery/queue/replace-job.ts'
import { createDeadLetters } from '../../src/delivery/records/dead-letters.ts'
import { createDeliveryLog } from '../../src/delivery/records/delivery-log.ts'
import { forgetGone, openReader } from '../../src/delivery/records/search.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { NotFoundError } from '../../src/lib/errors.ts'
import { createFiredAlerts } from '../../src/store/fired-alerts.ts'
import { droppedName, targetTagsName } from '../../src/store/keys.ts'
import { createNameStore } from '../../src/store/source/names.ts'
import { useRedis } from '../support/redis.ts'
import {
  beforeStoring,
  deliveryJob,
  endWaiting,
  jobs,
  limitedUser,
  type Rig,
  refusedInScript,
  rig,
  testSink,
  unavailable,
  until,
} from './rig.ts'

/** Alerts of a sink that left the config. `gone` left it, `next` is there. */

const server = useRedis()
const day = 86_400_000

function orphanRig(targets: Readonly<Record<string, readonly (string | undefined)[]>> = {}) {
  const own = rig(server, ['gone', 'next'])
  const { prefix, redis } = own
  const names = createNameStore(redis, prefix)
  const orphansIn = (sinks: string[], known = names) => {
    const queues = own.queues.reconfigured({ sinks })
    const map = new Map(sinks.map((sink) => [sink, targets[sink] ?? [undefined]]))
    const common = { queues, targets: map, clock: systemClock, prefix, retention: { ageMs: 7 * day } }
    return createOrphans({ ...common, names: known })
  }
  return { ...own, names, orphans: orphansIn(['next']), orphansIn, gone: own.queues.queue('gone') }
}

async function statesOf({ queues }: Rig, sink: string) {
  return queues.queue(sink).getJobCounts('wait', 'active', 'delayed', 'failed', 'completed')
}

const nothing = { wait: 0, active: 0, delayed: 0, failed: 0 }

describe('a sink that left the config with alerts', () => {
  it('is found by its name, with what is left; not while it is in the config, and not when nothing is left', async () => {
    const own = orphanRig()
    await own.queues.enqueue([...jobs('gone', 1, 3), ...jobs('next', 1, 1)])
    expect(await own.orphans.list()).toEqual([{ sink: 'gone', waiting: 3, sending: 0, delayed: 0, dead: 0 }])
    await own.orphans.check('gone')
    await expect(own.orphans.check('next')).rejects.toThrow('There is no orphan next.')
    expect(await own.orphansIn(['next', 'gone']).list()).toEqual([])
    expect(await own.orphans.drop('gone', {})).toMatchObject({ handled: 3 })
    expect(await own.orphans.list()).toEqual([])
  })

  it('of an installation that did not write names down is found by its keys', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 1))
    const [key] = await own.redis.keys(`*${own.prefix}*names:sinks`)
    await own.redis.del(key ?? '')
    expect(await own.orphans.list()).toEqual([])
    await own.names.findOnce()
    expect(await own.orphans.list()).toMatchObject([{ sink: 'gone', waiting: 1 }])
  })

  it('is part of the story of its alerts and is searched, also while another process has it in its config', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 1))
    await own.names.serve('old replica', ['gone'])
    const queues = own.queues.reconfigured({ sinks: ['next'] })
    const options = { queues, targets: new Map(), orphans: () => own.orphans.names() }
    expect(await createDeliveryLog(options).historiesOf({ source: 'main', id: 1 })).toMatchObject([
      { sink: 'gone', state: 'waiting' },
    ])
    const fired = createFiredAlerts(own)
    await forgetGone(fired, { ...options, withheldOf: async () => [], alertOf: () => undefined })
    expect(await fired.some(1)).toEqual(['main.1'])
  })

  it('is told before what a move or a drop would do to it, and nothing is changed by that', async () => {
    const own = orphanRig({ next: ['a', 'b'] })
    await own.queues.enqueue([
      ...jobs('gone', 1, 6),
      deliveryJob('next', 1, { target: 'a' }),
      deliveryJob('next', 1, { target: 'b' }),
    ])
    await own.queues.enqueue([deliveryJob('next', 2, { target: 'a' })])
    const record = { number: 1, atMs: 1, durationMs: 1, result: 'delivered' as const, text: 'ok' }
    await createJobFields(own.redis, own.gone).acknowledge({ id: 'main.3' }, record)
    await own.redis.set(own.gone.toKey('main.4:lock'), 'token')
    await own.redis.hset(own.gone.toKey('main.5'), 'data', '{}')
    const before = [await statesOf(own, 'gone'), await statesOf(own, 'next')]
    const fates = { handled: 2, there: 2, busy: 1, unreadable: 1, gone: 0, looked: 6, total: 6 }
    const dry = await own.orphans.move('gone', { to: 'next', dryRun: true })
    expect(dry).toMatchObject(fates)
    expect(dry.sample?.map(({ id }) => id)).toEqual([6, 2])
    expect(dry.cursor).toBeUndefined()
    expect(await own.orphans.drop('gone', { dryRun: true })).toMatchObject({ handled: 5, busy: 1 })
    expect([await statesOf(own, 'gone'), await statesOf(own, 'next')]).toEqual(before)
    const { sample: _, ...moved } = await own.orphans.move('gone', { to: 'next' })
    expect(moved).toMatchObject(fates)
    expect(await own.orphans.drop('gone', {})).toMatchObject({ handled: 1, busy: 1 })
  })

  it('is nothing that an operator of a sink in the config can move or drop by mistake', async () => {
    const own = orphanRig()
    await own.queues.enqueue([...jobs('gone', 1, 1), ...jobs('next', 1, 1)])
    for (const name of ['next', 'never'])
      await expect(own.orphans.drop(name, {})).rejects.toThrow(NotFoundError)
    await expect(own.orphans.move('gone', { to: 'gone' })).rejects.toThrow('There is no sink gone')
    expect((await statesOf(own, 'gone'))['wait']).toBe(1)
  })

  it('is none while another process has it in its config: a config that is rolled out', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 1))
    await own.names.serve('old replica', ['gone', 'next'])
    await own.names.serve('new replica', ['next'])
    expect(await own.orphans.list()).toEqual([])
    await expect(own.orphans.move('gone', { to: 'next' })).rejects.toThrow(
      'Another process has the sink gone',
    )
    await own.names.serve('old replica', [])
    expect(await own.orphans.list()).toMatchObject([{ sink: 'gone' }])
    // What a process said that died is believed for some seconds.
    await own.names.serve('a third', ['gone'])
    const [key] = await own.redis.keys(`*${own.prefix}*names:served`)
    await own.redis.zadd(key ?? '', Date.now() - 21_000, 'gone a third')
    expect(await own.orphans.list()).toMatchObject([{ sink: 'gone' }])
  })

  it('just goes on when its name comes back', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 2))
    const sink = testSink('gone')
    own.sender([sink])
    await until('both are sent', () => sink.sends.length === 2)
  })

  it('keeps records no longer than a sink of the config, and its name until nothing is left', async () => {
    const own = orphanRig()
    const nowMs = Date.now()
    await own.queues.enqueue(jobs('gone', 1, 2))
    await endWaiting(own, 'gone', { state: 'completed', fromMs: nowMs - 8 * day, stepMs: 2 * day })
    await own.orphans.tidy()
    expect(await own.gone.getCompletedCount()).toBe(1)
    expect(await own.names.sinks()).toEqual(['gone'])
    await own.redis.zadd(own.gone.toKey('completed'), nowMs - 8 * day, 'main.2')
    await own.orphans.tidy()
    expect(await own.names.sinks()).toEqual([])
    expect(await own.redis.keys(`${own.gone.toKey('')}*`)).toEqual([])
  })
})

describe('what is dropped', () => {
  it('is remembered as dropped, also once nothing else is left of the sink', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 2))
    expect(await own.orphans.drop('gone', {})).toMatchObject({ handled: 2 })
    await own.orphans.tidy()
    expect(await own.orphans.list()).toEqual([])
    const readers = { withheldOf: async () => [], alertOf: () => undefined, orphans: own.orphans.names }
    const queues = own.queues.reconfigured({ sinks: ['next'] })
    const reader = await openReader({ queues, targets: new Map(), ...readers })
    const dropped = await reader.dropped(['main.1', 'main.2', 'main.3'])
    expect(dropped.map(({ sink, name }) => `${sink}: ${name}`)).toEqual(['gone: main.1', 'gone: main.2'])
    // It expires by itself; then the name is forgotten, too.
    expect(await own.redis.pttl(own.gone.toKey(droppedName))).toBeGreaterThan(80 * day)
    await own.redis.del(own.gone.toKey(droppedName))
    await own.orphans.tidy()
    expect(await own.names.sinks()).toEqual([])
  })
})

describe('tidying up', () => {
  it('leaves a sink its name, its pause and its keys that another process has taken into its config at that moment', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 1))
    await own.gone.remove('main.1')
    await own.gone.rateLimit(60_000)
    const late = { ...own.names, served: async () => new Set<string>() }
    await own.names.serve('another', ['gone'])
    await own.orphansIn(['next'], late).tidy()
    expect(await own.names.sinks()).toEqual(['gone'])
    expect(await own.redis.exists(own.gone.toKey('limiter'))).toBe(1)
    await own.names.serve('another', [])
    await own.gone.pause()
    await own.orphansIn(['next']).tidy()
    expect([await own.gone.isPaused(), await own.names.sinks()]).toEqual([true, ['gone']])
    await own.gone.resume()
    await own.orphansIn(['next']).tidy()
    expect(await own.names.sinks()).toEqual([])
  })

  it('between the two steps of storing an alert loses neither its name nor its recipient', async () => {
    const own = orphanRig()
    const { gone, orphans } = own
    beforeStoring(gone, () => orphans.tidy())
    await own.queues.enqueue([deliveryJob('gone', 1, { target: 'a@example.com' })])
    expect(await own.names.sinks()).toEqual(['gone'])
    expect(await own.redis.exists(gone.toKey(targetTagsName))).toBe(1)
  })
})

describe('moving', () => {
  it('takes all of them, whatever their state, each once, with the time at which it was first seen', async () => {
    const own = orphanRig()
    const old = Date.now() - 3 * day
    const at = (from: number, to: number) => jobs('gone', from, to).map((job) => ({ ...job, seenAtMs: old }))
    await own.queues.enqueue(at(1, 1))
    await endWaiting(own, 'gone')
    const failing = testSink('gone', () => unavailable)
    const sender = own.sender([failing], {
      settings: {
        expireAfterMs: 30 * day,
        retry: { attempts: 5, initialDelayMs: 60_000, maxDelayMs: 60_000 },
      },
    })
    await own.queues.enqueue(at(2, 2))
    await until('one waits for its next attempt', async () => (await statesOf(own, 'gone'))['delayed'] === 1)
    await sender.stop(500)
    await own.queues.enqueue(at(3, 6))
    // As a process leaves it that died while it was sending.
    await own.redis.lmove(own.gone.toKey('wait'), own.gone.toKey('active'), 'RIGHT', 'LEFT')
    await own.gone.pause()

    const first = await own.orphans.move('gone', { to: 'next', limit: 2 })
    const rest = await own.orphans.move('gone', { to: 'next', cursor: first.cursor ?? '' })
    expect([first.total, first.handled + rest.handled, rest.cursor]).toEqual([6, 6, undefined])
    expect(await statesOf(own, 'gone')).toMatchObject(nothing)
    const next = testSink('next')
    own.sender([next])
    await until('all but the dead letter are sent', () => next.sends.length === 5)
    const stories = createDeliveryLog({ queues: own.queues, targets: new Map() })
    const [dead] = await stories.historiesOf({ source: 'main', id: 1 })
    expect(dead).toMatchObject({ sink: 'next', state: 'failed', seenAtMs: old, failure: 'rejected: 400 no' })
    expect((await stories.historiesOf({ source: 'main', id: 4 }))[0]).toMatchObject({
      sink: 'next',
      seenAtMs: old,
    })
    expect(next.sends.map(({ id }) => id).sort()).toEqual([2, 3, 4, 5, 6])
    await createDeadLetters({
      queues: own.queues,
      targets: new Map([['next', [undefined]]]),
      clock: systemClock,
    }).retry({ sink: 'next' })
    await until('the dead letter is sent', () => next.sends.length === 6)
  })

  it('sends no alert twice, and loses none, while a process of an older config still works at them', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 400))
    const [gone, next] = [testSink('gone'), testSink('next')]
    own.sender([gone, next], { settings: { concurrency: 10 } })
    await until('it works', () => gone.sends.length > 20)
    let left: string | undefined
    do left = (await own.orphans.move('gone', { to: 'next', ...(left ? { cursor: left } : {}) })).cursor
    while (left !== undefined)
    await until('all are sent', () => gone.sends.length + next.sends.length >= 400)
    await until('all are recorded', async () => {
      const { completed: there = 0 } = await statesOf(own, 'next')
      return there + (await own.gone.getCompletedCount()) >= 400
    })
    expect(new Set([...gone.sends, ...next.sends].map(({ id }) => id)).size).toBe(400)
    expect(gone.sends.length + next.sends.length).toBe(400)
    expect(next.sends.length).toBeGreaterThan(0)
  })

  it('sends dead letters with the rest when it is told to', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 2))
    await endWaiting(own, 'gone')
    expect(await own.orphans.move('gone', { to: 'next', retry: true })).toMatchObject({ handled: 2 })
    expect(await statesOf(own, 'next')).toMatchObject({ ...nothing, wait: 2 })
  })

  it.each(['sadd', 'hset', 'lpush'])(
    'in whose middle Redis refuses %s leaves the alert where it is, and goes on with the next try',
    async (command) => {
      const own = orphanRig()
      await own.queues.enqueue(jobs('gone', 1, 1))
      const { redis, may } = await limitedUser(server, 'commands')
      const [from, to] = [own.gone, own.queues.queue('next')]
      const job = { id: 'main.1', state: 'wait', token: '' }
      const move = () =>
        replaceJob({
          redis,
          prefix: own.prefix,
          from,
          to,
          job,
          copies: jobs('next', 1, 1),
          nowMs: Date.now(),
        })
      await may(`-${command}`)
      await expect(move()).rejects.toThrow(refusedInScript)
      expect(await statesOf(own, 'gone')).toMatchObject({ wait: 1 })
      await may('+@all')
      expect(await move()).toBe(1)
      expect(await statesOf(own, 'gone')).toMatchObject(nothing)
      expect(await statesOf(own, 'next')).toMatchObject({ wait: 1 })
    },
  )

  it('that broke off between storing and removing leaves no alert twice', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 3))
    // The first was stored there, and sent, when the process died.
    await own.queues.enqueue(jobs('next', 1, 1))
    await endWaiting(own, 'next', { state: 'completed' })
    expect(await own.orphans.move('gone', { to: 'next' })).toMatchObject({ handled: 2, there: 1 })
    expect(await statesOf(own, 'next')).toMatchObject({ wait: 2, completed: 1 })
    expect(await statesOf(own, 'gone')).toMatchObject(nothing)
  })

  it('leaves alone what is being sent, and what cannot be read, and says how many', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 3))
    await own.redis.lmove(own.gone.toKey('wait'), own.gone.toKey('active'), 'RIGHT', 'LEFT')
    await own.redis.set(own.gone.toKey('main.1:lock'), 'of a living process')
    await own.redis.hset(own.gone.toKey('main.2'), 'data', '{"v":2}')
    expect(await own.orphans.list()).toEqual([{ sink: 'gone', waiting: 2, sending: 1, delayed: 0, dead: 0 }])
    expect(await own.orphans.move('gone', { to: 'next' })).toMatchObject({
      handled: 1,
      busy: 1,
      unreadable: 1,
    })
    expect(await statesOf(own, 'gone')).toMatchObject({ ...nothing, wait: 1, active: 1 })
    expect(await own.orphans.drop('gone', {})).toMatchObject({ handled: 1, busy: 1 })
  })

  it('does not send again what its own sink had acknowledged when the process died', async () => {
    const own = orphanRig()
    await own.queues.enqueue(jobs('gone', 1, 2))
    const record = { number: 1, atMs: 1, durationMs: 1, result: 'delivered' as const, text: 'ok' }
    await createJobFields(own.redis, own.gone).acknowledge({ id: 'main.1' }, record)
    expect(await own.orphans.move('gone', { to: 'next' })).toMatchObject({ handled: 1, there: 1 })
    expect((await own.queues.queue('next').getWaiting()).map(({ id }) => id)).toEqual(['main.2'])
  })

  it.each([
    ['the same recipient where there is one, else all of them', ['a', 'b'], ['b', 'c'], ['b', 'c'], ['b']],
    ['all recipients, from a sink with one target', [undefined], ['b', 'c'], ['b', 'c'], ['b', 'c']],
    ['the one target, from a sink with recipients', ['a', 'b'], [undefined], [undefined], [undefined]],
  ])('goes to %s', async (_what, from, to, sentOnce, deadOnce) => {
    const own = orphanRig({ next: to })
    const targeted = (id: number) =>
      from.map((target) => deliveryJob('gone', id, target === undefined ? {} : { target }))
    await own.queues.enqueue(targeted(1).slice(-1))
    await endWaiting(own, 'gone')
    await own.queues.enqueue(targeted(2))
    await own.orphans.move('gone', { to: 'next' })
    const next = own.queues.queue('next')
    const targetsOf = (found: { data: { target?: string | undefined } }[]) =>
      found.map(({ data }) => data.target).sort()
    expect(targetsOf(await next.getWaiting())).toEqual(sentOnce)
    expect(targetsOf(await next.getFailed())).toEqual(deadOnce)
    expect(await statesOf(own, 'gone')).toMatchObject(nothing)
  })
})
