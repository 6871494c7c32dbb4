import { expect, it } from 'vitest'
import { retryQuarantined } from '../../src/intake/quarantine.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { onTestFinished } from '../support/finished.ts'
import { startRedis } from '../support/redis.ts'
import { intakeRig } from './rig.ts'

it('rows leave the quarantine at the Redis that their jobs were stored at: not at a next master, nor at one that is back without them', async () => {
  const own = await startRedis({ aof: 'always' })
  onTestFinished(() => own.dispose())
  const { redis, prefix, rig, queues, quarantine } = intakeRig(own)
  const row = { key: '7', reason: 'of an earlier version', raw: rawRow(7), atMs: 1 }
  const keys = sourceKeys(prefix, 'main')
  await redis.hset(keys.quarantined, row.key, JSON.stringify(row))
  await redis.zadd(keys.quarantinedTimes, row.atMs, row.key)
  const enqueue = queues.enqueue.bind(queues)
  queues.enqueue = async () => {
    // They are stored, and lost with it.
    queues.enqueue = enqueue
    await own.kill9()
    await own.start()
    while (redis.status !== 'ready') await new Promise((resolve) => redis.once('ready', resolve))
  }
  const { clock, inForce } = rig.deps
  const deps = { source: 'main', store: quarantine, intake: inForce.intake, clock, metrics: rig.metrics }
  expect(await retryQuarantined(deps, [row])).toEqual({ sent: 1, unreadable: 0 })
  expect(queues.order).toEqual([7])
  expect(await quarantine.list(10)).toEqual([])
})

function rawRow(id: number): string {
  const url = `https://example.com/${id}`
  const plain = { id, kind: 'price', payload: [], headline: `alert ${id}`, url, ruleIds: ['1'] }
  return JSON.stringify({ ...plain, firedAt: '2026-11-21T09:00:00Z', channels: [], isRead: false })
}
