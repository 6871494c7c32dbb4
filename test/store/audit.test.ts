import { expect, it } from 'vitest'
import { createAuditStore } from '../../src/store/operators/audit.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const server = useRedis()

const at = '2026-11-21T08:33:10.123Z'
const entry = { at, action: 'retry dead letters', comment: '', by: 'http.adminToken', from: '127.0.0.1' }

function order(subject: string, ids: readonly string[], count: number) {
  return { ...entry, subject, ids, count, order: at }
}

it('portions of an order are one entry, and orders that began in the same millisecond are one each', async () => {
  const audit = createAuditStore({ redis: server.client(), prefix: freshPrefix() })
  await audit.add(order('mail, reason expired', [], 500))
  await audit.add(order('mail, reason expired', [], 12))
  await audit.add(order('chat, reason rejected', [], 3))
  await audit.add(order('chat', ['main.1'], 1))
  await audit.add(order('chat', ['main.2'], 1))
  const found = await audit.list(10)
  expect(found.map(({ subject, ids, count }) => [subject, ...ids, count])).toEqual([
    ['chat', 'main.2', 1],
    ['chat', 'main.1', 1],
    ['chat, reason rejected', 3],
    ['mail, reason expired', 512],
  ])
})

it('an order by more ids than are kept of it stays one entry, however few of them its last portion has', async () => {
  const audit = createAuditStore({ redis: server.client(), prefix: freshPrefix() })
  await audit.add(order('chat', [], 500))
  await audit.add(order('chat', ['main.501'], 1))
  expect((await audit.list(10)).map(({ count }) => count)).toEqual([501])
})
