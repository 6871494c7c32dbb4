import { expect, it } from 'vitest'
import type { DeliveryJob } from '../../src/alert/job.ts'
import { createOperators } from '../../src/app/operators.ts'
import { createNoticeStore } from '../../src/store/notices.ts'
import { until } from '../support/app.ts'
import { clockAt, passingClock } from '../support/clock.ts'
import { onTestFinished } from '../support/finished.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()

it('a sink whose breaker closes is told to be well after a while, also where nothing waits to be sent', async () => {
  const clock = passingClock()
  const told: string[] = []
  let breaker: 'open' | 'closed' = 'open'
  const queues = {
    sinks: ['hook'],
    enqueue: async (jobs: readonly DeliveryJob[]) => void told.push(...jobs.map(({ alert }) => alert.kind)),
    failedSince: async () => 0,
    // The replica that delivered what waited did so before this one saw that the sink is well.
    completedSince: async () => 0,
  }
  const operators = createOperators({
    active: () => ({ operators: ['desk'], queues, targets: new Map() }),
    sources: async () => [],
    breakers: () => [{ sink: 'hook', breaker, reason: 'HTTP 503' }],
    store: createNoticeStore(redis.client(), freshPrefix()),
    clock,
    log: captureLog().log,
  })
  const ending = new AbortController()
  const running = operators.run(ending.signal)
  onTestFinished(() => {
    ending.abort()
    return running
  })
  await until('the outage is told', () => told.length === 1)
  breaker = 'closed'
  operators.onBreaker({ sink: 'hook', state: 'closed', reason: '' })
  await until('the recovery is told', () => {
    clock.pass(5_000)
    return told.length === 2
  })
  expect(told).toEqual(['bridge.sink_down', 'bridge.sink_up'])
})

it('what two replicas tell in the same millisecond are two notices', async () => {
  const store = createNoticeStore(redis.client(), freshPrefix())
  const ids: number[] = []
  const queues = {
    sinks: [],
    enqueue: async (jobs: readonly DeliveryJob[]) => void ids.push(...jobs.map(({ alert }) => alert.id)),
    failedSince: async () => 0,
    completedSince: async () => 0,
  }
  for (const sink of ['hook', 'mail'])
    createOperators({
      active: () => ({ operators: ['desk'], queues, targets: new Map() }),
      sources: async () => [],
      breakers: () => [],
      store,
      clock: clockAt(() => 1_795_000_000_000),
      log: captureLog().log,
    }).onBreaker({ sink, state: 'open', reason: 'HTTP 503' })
  await until('both are told', () => ids.length === 2)
  expect(new Set(ids).size).toBe(2)
  expect(ids.every(Number.isSafeInteger)).toBe(true)
})
