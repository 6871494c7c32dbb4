import { expect, it } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { currentStatus } from '../../src/app/source/current-status.ts'
import { tryLease } from '../../src/store/source/lease.ts'
import { createSourceStatus, startingStatus } from '../../src/store/source/source-status.ts'
import { startApp } from '../support/app.ts'
import { api } from '../support/bridge.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { ownRedis, pass, redisRig } from '../support/redis-rig.ts'
import { until } from '../support/until.ts'

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

it('a source does not run while Redis answers and takes nothing, also after its lease is lost', async () => {
  const server = await ownRedis()
  const { text } = await redisRig(server)
  const { url, lines } = await startApp(text)
  const source = async () => (await api<StatusView>(url, '/api/v1/status')).sources[0]
  await until('it polls', async () => (await source())?.state === 'running')
  await server.client().replicaof('127.0.0.1', 1)
  await until('the lease is lost', () => lines.some(({ msg }) => msg === 'poller.lease_lost'), 30_000)
  for (let look = 0; look < 5; look += 1) {
    await pass(1_000)
    // Each READONLY makes the connection anew, and for that moment it is what is missing.
    const reason = expect.stringMatching(/^READONLY|^not connected$/)
    expect(await source()).toMatchObject({ state: 'retrying', reason })
  }
  await server.client().replicaof('NO', 'ONE')
  await until('it polls again', async () => (await source())?.state === 'running', 30_000)
}, 90_000)
