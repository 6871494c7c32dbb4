import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { noticeMaker } from '../../src/app/notices/notice-sender.ts'
import { noticesKey } from '../../src/store/keys.ts'
import { createNoticeStore } from '../../src/store/operators/notices.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()
const hourMs = 3_600_000

/** A notice of a replica whose clock is so far from that of Redis. */
function noticeOf(skewMs: number, sink: string) {
  return noticeMaker({ now: () => Date.now() + skewMs }, () => 'UTC')({ kind: 'sink_up', sink, reason: '' })
}

it('a notice that no queue has taken yet is sent and dropped by the clock of Redis, whatever clock made it', async () => {
  const prefix = freshPrefix()
  const store = createNoticeStore(redis.client(), prefix)
  const skews = [48, -48, 13, -13, 0]
  const notices = skews.map((hours) => noticeOf(hours * hourMs, `by ${hours} h`))
  for (const [nth, notice] of notices.entries())
    await store.begin(`trouble ${nth}`, { againMs: hourMs, notice })
  const unsent = await store.unsent()
  expect(unsent.map(({ sink }) => sink).sort()).toEqual(notices.map(({ sink }) => sink).sort())
})

it('what was told first is sent first, also where the clock of who told it is ahead', async () => {
  const store = createNoticeStore(redis.client(), freshPrefix())
  await store.begin('one', { againMs: hourMs, notice: noticeOf(hourMs, 'first') })
  await setTimeout(5)
  await store.begin('another', { againMs: hourMs, notice: noticeOf(0, 'second') })
  expect((await store.unsent()).map(({ sink }) => sink)).toEqual(['first', 'second'])
})

it('a notice that was stored again, since its answer was lost, keeps its age', async () => {
  const prefix = freshPrefix()
  const client = redis.client()
  const store = createNoticeStore(client, prefix)
  const [key, notice] = [noticesKey(prefix), noticeOf(0, 'hook')]
  await store.begin('trouble', { againMs: 0, notice })
  const before = await client.hgetall(key)
  expect(Object.keys(before)).toEqual([String(notice.id)])
  await store.begin('trouble', { againMs: 0, notice })
  expect(await client.hgetall(key)).toEqual(before)
})

it.each([
  ['twelve hours', 12 * hourMs + 60_000, []],
  ['less', 12 * hourMs - 60_000, ['hook']],
])(
  'a notice that no queue took for %s is there or dropped, also one of an earlier version',
  async (_what, agoMs, left) => {
    const prefix = freshPrefix()
    const client = redis.client()
    const store = createNoticeStore(client, prefix)
    const key = noticesKey(prefix)
    const notice = noticeOf(0, 'hook')
    await client.hset(key, notice.id, JSON.stringify({ ...notice, addedMs: Date.now() - agoMs }))
    expect((await store.unsent()).map(({ sink }) => sink)).toEqual(left)
    const earlier = noticeOf(-agoMs, 'hook')
    await client.del(key)
    await client.hset(key, earlier.id, JSON.stringify(earlier))
    expect((await store.unsent()).map(({ sink }) => sink)).toEqual(left)
    expect(await client.hlen(key)).toBe(left.length)
  },
)
