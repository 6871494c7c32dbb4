import { expect, it } from 'vitest'
import type { Alert } from '../../src/alert/alert.ts'
import { retryQuarantined } from '../../src/intake/quarantine.ts'
import type { RedisClient } from '../../src/store/connection/redis.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import type { Quarantined } from '../../src/store/walk/quarantine.ts'
import { createWithheldStore } from '../../src/store/walk/withheld.ts'
import { onTestFinished } from '../support/finished.ts'
import { replaceServer, startRedis } from '../support/redis.ts'
import { intakeRig } from './rig.ts'

it('rows leave the quarantine at the Redis that their jobs were stored at: not at a next master, nor at one that is back without them', async () => {
  const own = await startRedis({ aof: 'always' })
  onTestFinished(() => own.dispose())
  const { redis, prefix, rig, queues, quarantine } = intakeRig(own)
  const row = await quarantined(redis, prefix)
  const enqueue = queues.enqueue.bind(queues)
  queues.enqueue = async () => {
    // They are stored, and lost with it.
    queues.enqueue = enqueue
    await replaceServer(own, redis)
  }
  const { clock, inForce } = rig.deps
  const deps = { source: 'main', store: quarantine, intake: inForce.intake, clock, metrics: rig.metrics }
  expect(await retryQuarantined(deps, [row])).toEqual({ sent: 1, unreadable: 0 })
  expect(queues.order).toEqual([7])
  expect(await quarantine.list(10)).toEqual([])
})

it('rows that are withheld leave it at the Redis that has the record of that', async () => {
  const own = await startRedis({ aof: 'always' })
  onTestFinished(() => own.dispose())
  const { redis, prefix, rig, quarantine } = intakeRig(own)
  const row = await quarantined(redis, prefix)
  const retention = { ageMs: 86_400_000, count: 100 }
  const withheld = createWithheldStore({ redis, prefix, source: 'main', retention })
  const held = [{ route: null, sinks: ['hook'], reason: 'silenced' as const }]
  let isReplaced = false
  const prepareAssign = async () => async (alerts: readonly Alert[], seenAtMs: number) => {
    await withheld.keep(alerts.map((alert) => ({ v: 1, seenAtMs, row: alert.row, held })))
    if (!isReplaced) {
      isReplaced = true
      await replaceServer(own, redis)
      // It is back without its last second.
      await redis.del(sourceKeys(prefix, 'main').held)
    }
    return alerts.map(() => ({ sinks: [], withheld: ['silenced' as const] }))
  }
  const { clock, inForce } = rig.deps
  const intake = { ...inForce.intake, prepareAssign }
  const deps = { source: 'main', store: quarantine, intake, clock, metrics: rig.metrics }
  expect(await retryQuarantined(deps, [row])).toEqual({ sent: 1, unreadable: 0 })
  expect(await quarantine.list(10)).toEqual([])
  expect(await withheld.of(7)).toMatchObject({ held })
})

async function quarantined(redis: RedisClient, prefix: string): Promise<Quarantined> {
  const row = { key: '7', reason: 'of an earlier version', raw: rawRow(7), atMs: 1 }
  const keys = sourceKeys(prefix, 'main')
  await redis.hset(keys.quarantined, row.key, JSON.stringify(row))
  await redis.zadd(keys.quarantinedTimes, row.atMs, row.key)
  return row
}

function rawRow(id: number): string {
  const url = `https://example.com/${id}`
  const plain = { id, kind: 'price', payload: [], headline: `alert ${id}`, url, ruleIds: ['1'] }
  return JSON.stringify({ ...plain, firedAt: '2026-11-21T09:00:00Z', channels: [], isRead: false })
}
