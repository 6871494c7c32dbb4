import { describe, expect, it } from 'vitest'
import { toJobData } from '../../src/alert/job.ts'
import { acknowledgedMax, createAcknowledged } from '../../src/delivery/acknowledgement/acknowledged.ts'
import { deliver, type LockedJob } from '../../src/delivery/attempt/deliver.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { wallClock } from '../support/clock.ts'
import { delivered, deliveryJob, quickSettings, testSink, unavailable } from './rig.ts'

const dayMs = 86_400_000

const record = { number: 1, atMs: 0, durationMs: 1, result: 'delivered' as const, text: 'ok' }

function setting() {
  const sink = testSink('hook')
  const acknowledged = createAcknowledged()
  const log = createLogger({ level: 'silent' })
  return {
    sink,
    settings: quickSettings,
    acknowledged,
    clock: systemClock,
    log,
    takeOverMs: 50,
    begins: () => {},
    stopping: never,
    queueState: () => ({ emptyMs: 0, isFull: false }),
  }
}

function locked(more: Partial<LockedJob> = {}): LockedJob {
  const data = toJobData(deliveryJob('hook', 1))
  return {
    id: 'main.1',
    data,
    number: 1,
    takenOver: false,
    waited: async () => {},
    claim: async () => due,
    ...more,
  }
}

const due = { earlyMs: 0 }

const never = new AbortController().signal

describe('one attempt', () => {
  it('is made when the lock is still ours', async () => {
    const context = setting()
    const tried = await deliver(locked(), never, context)
    expect(tried).toMatchObject({ step: 'sent', name: 'hook/main.1/', outcome: { kind: 'delivered' } })
  })

  it('is made without the context that a bug keeps from it', async () => {
    const context = { ...setting(), findContext: () => Promise.reject(new TypeError('a bug')) }
    expect(await deliver(locked(), never, context)).toMatchObject({ step: 'sent' })
  })

  it.each([
    ['belongs to another worker', async () => undefined],
    ['cannot be asked for, as Redis is away', () => Promise.reject(new Error('Connection is closed'))],
  ])('is not made when the lock %s', async (_why, claim) => {
    const context = setting()
    expect(await deliver(locked({ claim }), never, context)).toEqual({ step: 'not_ours' })
    expect(context.sink.sends).toHaveLength(0)
  })

  it('is not made once shutdown has begun, even while the lock is renewed', async () => {
    const context = setting()
    const controller = new AbortController()
    const claim = async () => {
      controller.abort()
      return due
    }
    expect(await deliver(locked({ claim }), controller.signal, context)).toEqual({ step: 'not_ours' })
  })

  it('is not made again for what this process knows to be acknowledged, unless an operator asks', async () => {
    const context = setting()
    context.acknowledged.add('hook/main.1/', record)
    expect(await deliver(locked(), never, context)).toEqual({ step: 'acknowledged_before', record })
    const asked = { ...toJobData(deliveryJob('hook', 1)), requestedAtMs: Date.now() }
    expect(await deliver(locked({ data: asked }), never, context)).toMatchObject({ step: 'sent' })
    expect(context.sink.sends).toHaveLength(1)
  })

  it('of a job that was taken over is made only after its former process had time to write that it was acknowledged', async () => {
    const context = setting()
    const sleeps: number[] = []
    const clock = { ...systemClock, sleep: async (ms: number) => void sleeps.push(ms) }
    const take = (fieldsAfter: object) =>
      deliver(
        locked({
          takenOver: true,
          claim: async () => (sleeps.length > 0 ? { ...due, ...fieldsAfter } : due),
        }),
        never,
        { ...context, clock },
      )
    expect(await take({ acknowledged: record })).toEqual({ step: 'acknowledged_before', record })
    expect(context.sink.sends).toHaveLength(0)
    expect(await take({})).toMatchObject({ step: 'sent' })
    expect(sleeps).toEqual([context.takeOverMs, context.takeOverMs])
  })

  it('is not made for what another process has written to be acknowledged', async () => {
    const context = setting()
    const claim = async () => ({ ...due, acknowledged: record })
    expect(await deliver(locked({ claim }), never, context)).toEqual({ step: 'acknowledged_before', record })
    expect(context.sink.sends).toHaveLength(0)
  })

  it('says how much too early it ended, by a clock that nobody sets', async () => {
    const clock = wallClock()
    const context = { ...setting(), clock }
    context.sink.answer = () => {
      clock.turn(-dayMs)
      return unavailable
    }
    const claim = async () => ({ earlyMs: 60_000 })
    const tried = await deliver(locked({ claim }), never, context)
    if (tried.step !== 'sent') throw new Error(tried.step)
    expect(tried.earlyMs).toBeGreaterThan(50_000)
    expect(tried.earlyMs).toBeLessThanOrEqual(60_000)
    expect(tried.durationMs).toBeGreaterThanOrEqual(0)
    context.sink.answer = () => delivered
    expect(await deliver(locked(), never, context)).toMatchObject({ earlyMs: 0 })
  })

  it('is given up on when the sink keeps neither its limit nor its signal', async () => {
    const context = { ...setting(), settings: { ...quickSettings, timeoutMs: 1 } }
    context.sink.answer = () => new Promise(() => {})
    const tried = await deliver(locked(), never, context)
    expect(tried).toMatchObject({ step: 'sent', outcome: { kind: 'retry', reason: 'timeout' } })
    expect(context.sink.sends[0]?.signal.aborted).toBe(true)
  })
})

describe('the memory of what was acknowledged', () => {
  it('forgets the oldest first and stays bounded', () => {
    const memory = createAcknowledged(2)
    for (const name of ['a', 'b', 'a', 'c']) memory.add(name, record)
    expect(['a', 'b', 'c'].map((name) => memory.get(name) !== undefined)).toEqual([true, false, true])
    expect(acknowledgedMax).toBe(10_000)
  })
})
