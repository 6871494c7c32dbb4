import { expect, it } from 'vitest'
import { currentStatus } from '../../src/app/current-status.ts'
import { tryLease } from '../../src/store/lease.ts'
import { createSourceStatus, startingStatus } from '../../src/store/source-status.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()
const stopped = { ...startingStatus('main', 2_000, Date.now()), state: 'stopped', reason: '401' } as const
const waiting = { ...stopped, state: 'waiting', reason: 'as planned' } as const

it('a process that was frozen beyond its lease shows what another stored since, not that its source is stopped', async () => {
  const place = { redis: redis.client(), prefix: freshPrefix(), source: 'main' }
  const stored = createSourceStatus(place)
  let frozenMs = 0
  const elapsed = () => performance.now() + frozenMs
  const lease = await tryLease({ ...place, elapsed, log: captureLog().log })
  await stored.save(waiting)
  expect(await currentStatus(stopped, lease, stored.load)).toEqual(stopped)
  frozenMs = 20_000
  expect(await currentStatus(stopped, lease, stored.load)).toMatchObject(waiting)
  // Nothing else is known while Redis is away.
  const away = () => Promise.reject(new Error('Connection is closed.'))
  expect(await currentStatus(stopped, lease, away)).toEqual(stopped)
  await lease?.release()
})

it('a process without a lease, or that has released it, shows what is stored', async () => {
  const place = { redis: redis.client(), prefix: freshPrefix(), source: 'main' }
  const stored = createSourceStatus(place)
  await stored.save(waiting)
  expect(await currentStatus(stopped, undefined, stored.load)).toMatchObject(waiting)
  const lease = await tryLease({ ...place, log: captureLog().log })
  await lease?.release()
  expect(await currentStatus(stopped, lease, stored.load)).toMatchObject(waiting)
})
