import { expect, it } from 'vitest'
import { createPauses } from '../../src/app/pauses.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createPauseStore } from '../../src/store/pauses.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { until } from '../support/app.ts'
import { onTestFinished } from '../support/finished.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()
const hourMs = 3_600_000

/** The pauses of one process whose config has only this sink. `paused`: the queues, which all processes share. */
function processWith(sink: string, { prefix, paused }: { prefix: string; paused: Set<string> }) {
  const ending = new AbortController()
  onTestFinished(() => ending.abort())
  const store = createPauseStore(redis.client(), prefix)
  const sender = {
    states: () => [{ sink }],
    pause: async (name: string) => name === sink && paused.add(name).has(name),
    async resume(name: string) {
      if (name === sink) paused.delete(name)
      return name === sink
    },
  }
  const clock = { ...systemClock, now: () => Date.now() + hourMs }
  const log = createLogger({ level: 'silent' })
  const pauses = createPauses({ sender, store, clock, log, lookEveryMs: 10 })
  return { pauses, store, sender, run: () => void pauses.run(ending.signal) }
}

it('a pause ends for a process that has the sink, also after one that does not have it looked', async () => {
  const shared = { prefix: freshPrefix(), paused: new Set<string>() }
  const ours = processWith('hook', shared)
  const other = processWith('mail', shared)
  for (const [name, each] of Object.entries({ hook: ours, mail: other }))
    await each.pauses.pause(name, { untilMs: Date.now(), comment: '' })
  other.run()
  await until('the other process has looked', () => !shared.paused.has('mail'))
  ours.run()
  await until('it is resumed', () => !shared.paused.has('hook'))
})

it('a sink that is paused anew while its former pause ends stays paused', async () => {
  const shared = { prefix: freshPrefix(), paused: new Set<string>() }
  const { pauses, store, sender, run } = processWith('hook', shared)
  await pauses.pause('hook', { untilMs: Date.now(), comment: 'the first' })
  const second = { untilMs: Date.now() + 9 * hourMs, comment: 'the second' }
  const resume = sender.resume
  let ends = 0
  sender.resume = async (name) => {
    if (ends === 0) await pauses.pause('hook', second)
    const resumed = await resume(name)
    ends += 1
    return resumed
  }
  run()
  await until(
    'the end of the first was noticed, and it is paused',
    () => ends > 0 && shared.paused.has('hook'),
  )
  expect([...(await store.list()).values()]).toEqual([second])
})

it('a pause whose end could not be stored is none', async () => {
  const shared = { prefix: freshPrefix(), paused: new Set<string>() }
  const { pauses, store } = processWith('hook', shared)
  const away = new Error('Redis is away')
  store.set = () => Promise.reject(away)
  await expect(pauses.pause('hook', { untilMs: Date.now() + hourMs, comment: '' })).rejects.toBe(away)
  expect(shared.paused.size).toBe(0)
  expect(await pauses.pause('mail', { comment: '' })).toBe(false)
})

it('orders to pause and to resume that cross leave no pause without its end, whichever comes first', async () => {
  /** `at`: after which call of the one order the other one is carried out whole. */
  const crossed = async (first: 'pause' | 'resume', at: 'store' | 'queue') => {
    const shared = { prefix: freshPrefix(), paused: new Set<string>() }
    const { pauses, store, sender } = processWith('hook', shared)
    const other = processWith('hook', shared).pauses
    const order = { untilMs: Date.now() + 9 * hourMs, comment: 'nine hours' }
    const between = first === 'pause' ? () => other.resume('hook') : () => other.pause('hook', order)
    const { set, end } = store
    const { pause: hold, resume: go } = sender
    let isDue = true
    const after = async <T>(done: T) => {
      if (isDue) {
        isDue = false
        await between()
      }
      return done
    }
    if (at === 'store') {
      store.set = async (...given) => after(await set(...given))
      store.end = async (...given) => after(await end(...given))
    } else {
      sender.pause = async (...given) => after(await hold(...given))
      sender.resume = async (...given) => after(await go(...given))
    }
    await (first === 'pause' ? pauses.pause('hook', order) : pauses.resume('hook'))
    return { isPaused: shared.paused.has('hook'), hasEnd: (await store.list()).has('hook') }
  }
  for (const first of ['pause', 'resume'] as const)
    for (const at of ['store', 'queue'] as const) {
      const { isPaused, hasEnd } = await crossed(first, at)
      expect({ first, at, isForever: isPaused && !hasEnd }).toEqual({ first, at, isForever: false })
    }
})
