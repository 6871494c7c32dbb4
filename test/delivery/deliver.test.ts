import { describe, expect, it } from 'vitest'
import { toJobData } from '../../src/alert/job.ts'
import { acknowledgedMax, createAcknowledged } from '../../src/delivery/acknowledged.ts'
import { deliver, type LockedJob } from '../../src/delivery/deliver.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { deliveryJob, quickSettings, testSink } from './support.ts'

const record = { number: 1, atMs: 0, durationMs: 1, result: 'delivered' as const, text: 'ok' }

function setting() {
  const sink = testSink('hook')
  const acknowledged = createAcknowledged()
  const log = createLogger({ level: 'silent' })
  return { sink, settings: quickSettings, acknowledged, clock: systemClock, log }
}

function locked(more: Partial<LockedJob> = {}): LockedJob {
  const data = toJobData(deliveryJob('hook', 1))
  return { id: 'main.1', data, number: 1, extendLock: async () => true, ...more }
}

const never = new AbortController().signal

describe('one attempt', () => {
  it('is made when the lock is still ours', async () => {
    const context = setting()
    const tried = await deliver(locked(), never, context)
    expect(tried).toMatchObject({ step: 'sent', name: 'hook/main.1/', outcome: { kind: 'delivered' } })
  })

  it.each([
    ['belongs to another worker', async () => false],
    ['cannot be asked for, as Redis is away', () => Promise.reject(new Error('Connection is closed'))],
  ])('is not made when the lock %s', async (_why, extendLock) => {
    const context = setting()
    expect(await deliver(locked({ extendLock }), never, context)).toEqual({ step: 'not_ours' })
    expect(context.sink.sends).toHaveLength(0)
  })

  it('is not made once shutdown has begun, even while the lock is renewed', async () => {
    const context = setting()
    const controller = new AbortController()
    const extendLock = async () => {
      controller.abort()
      return true
    }
    expect(await deliver(locked({ extendLock }), controller.signal, context)).toEqual({ step: 'not_ours' })
  })

  it('is not made again for what this process knows to be acknowledged, unless an operator asks', async () => {
    const context = setting()
    context.acknowledged.add('hook/main.1/', record)
    expect(await deliver(locked(), never, context)).toEqual({ step: 'acknowledged_before', record })
    const asked = { ...toJobData(deliveryJob('hook', 1)), requestedAtMs: Date.now() }
    expect(await deliver(locked({ data: asked }), never, context)).toMatchObject({ step: 'sent' })
    expect(context.sink.sends).toHaveLength(1)
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
