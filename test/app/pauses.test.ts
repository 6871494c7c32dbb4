import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createPauses } from '../../src/app/pauses.ts'
import { openQueue } from '../../src/delivery/queue/queues.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { given } from '../../src/lib/given.ts'
import { createPauseStore } from '../../src/store/operators/pauses.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { onTestFinished } from '../support/finished.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const redis = useRedis()
const hourMs = 3_600_000
const order = { untilMs: Date.now() + 9 * hourMs, comment: 'nine hours' }

/** The pauses of one process whose config has only this sink. */
function processWith(sink: string, prefix: string) {
  const ending = new AbortController()
  onTestFinished(() => ending.abort())
  const client = redis.client()
  const store = createPauseStore(client, prefix)
  const clock = { ...systemClock, now: () => Date.now() + hourMs }
  const log = createLogger({ level: 'silent' })
  const hasSink = (name: string) => name === sink
  const pauses = createPauses({ hasSink, store, clock, log, lookEveryMs: 10 })
  return { client, pauses, store, run: () => void pauses.run(ending.signal) }
}

function isPaused(sink: string, prefix: string): Promise<boolean> {
  return openQueue(redis.client(), prefix, sink).isPaused()
}

it('a pause ends for a process that has the sink, also after one that does not have it looked', async () => {
  const prefix = freshPrefix()
  const ours = processWith('hook', prefix)
  const other = processWith('mail', prefix)
  for (const [name, each] of Object.entries({ hook: ours, mail: other }))
    expect(await each.pauses.pause(name, { untilMs: Date.now(), comment: '' })).toBeTypeOf('string')
  expect(await ours.pauses.pause('mail', { comment: '' })).toBeUndefined()
  other.run()
  await until('the other process has looked', async () => !(await isPaused('mail', prefix)))
  expect(await isPaused('hook', prefix)).toBe(true)
  ours.run()
  await until('it is resumed', async () => !(await isPaused('hook', prefix)))
  expect((await ours.store.list()).size).toBe(0)
})

it('a sink that is paused anew while its former pause ends stays paused', async () => {
  const prefix = freshPrefix()
  const { pauses, store } = processWith('hook', prefix)
  const first = { untilMs: Date.now(), comment: 'the first' }
  await pauses.pause('hook', first)
  await pauses.pause('hook', order)
  // By a process that read the list before.
  expect(await store.resume('hook', first)).toBe(false)
  expect([await isPaused('hook', prefix), (await store.list()).get('hook')]).toEqual([true, order])
})

it('who ends the own pause does not end the one that another operator has set since, nor sets one in its place', async () => {
  for (const untilMs of [order.untilMs, undefined]) {
    const prefix = freshPrefix()
    const { pauses } = processWith('hook', prefix)
    const [mine, theirs] = [
      { comment: '', ...given({ untilMs }) },
      { comment: '', ...given({ untilMs: untilMs && untilMs + 1 }) },
    ]
    const id = await pauses.pause('hook', mine)
    await pauses.resume('hook')
    await setTimeout(2)
    const other = await pauses.pause('hook', theirs)
    await expect(pauses.resume('hook', id)).rejects.toThrow('paused anew')
    await expect(pauses.pause('hook', { ...mine, unlessPaused: true })).rejects.toThrow('is paused')
    expect((await pauses.list()).get('hook')?.untilMs).toBe(theirs.untilMs ?? null)
    expect(await isPaused('hook', prefix)).toBe(true)
    expect(await pauses.resume('hook', other)).toBe(true)
    expect(await pauses.resume('hook', other)).toBe(true)
    expect(await isPaused('hook', prefix)).toBe(false)
    expect(await pauses.pause('hook', { ...mine, unlessPaused: true })).toBeTypeOf('string')
  }
})

it('a sink goes on when it is resumed, whatever its alerts wait for, as with the order of BullMQ', async () => {
  for (const delay of [0, 30_000]) {
    const prefix = freshPrefix()
    const { client, pauses } = processWith('hook', prefix)
    const queue = openQueue(client, prefix, 'hook')
    await pauses.pause('hook', order)
    await queue.add('alert', JSON.parse('{}'), { delay })
    const markerAfter = async (resume: Promise<unknown>) => {
      await resume
      return client.zrange(queue.toKey('marker'), '0', '-1', 'WITHSCORES')
    }
    const own = await markerAfter(pauses.resume('hook'))
    await queue.pause()
    expect(await markerAfter(queue.resume())).toEqual(own)
    expect(own).toHaveLength(2)
  }
})

it('an order to pause or to resume leaves no pause without its end, whichever crosses it, and wherever its process is killed', async () => {
  for (const first of ['pause', 'resume'] as const)
    for (let crosses = 1; crosses <= 4; crosses += 1)
      for (let dies = crosses; dies <= 4; dies += 1) {
        const prefix = freshPrefix()
        const [own, other] = [processWith('hook', prefix), processWith('hook', prefix)]
        if (first === 'resume') await own.pauses.pause('hook', order)
        const killed = commandsOf(own.client, { crosses, dies }, () =>
          first === 'pause' ? other.pauses.resume('hook') : other.pauses.pause('hook', order),
        )
        await Promise.race([
          killed,
          first === 'pause' ? own.pauses.pause('hook', order) : own.pauses.resume('hook'),
        ])
        const known = {
          paused: await isPaused('hook', prefix),
          hasEnd: (await other.store.list()).has('hook'),
        }
        expect({ first, crosses, dies, ...known }).toMatchObject({ hasEnd: known.paused })
      }
})

/** Before command `crosses` of this connection, `between` is carried out; after command `dies`, none is answered: then it resolves. */
function commandsOf(
  client: ReturnType<typeof redis.client>,
  { crosses, dies }: { crosses: number; dies: number },
  between: () => Promise<unknown>,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const send = client.sendCommand.bind(client)
  let count = 0
  client.sendCommand = (...given) => {
    count += 1
    if (count > dies) {
      resolve()
      return new Promise(() => {})
    }
    return count === crosses ? between().then(() => send(...given)) : send(...given)
  }
  return promise
}
