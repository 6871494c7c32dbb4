import { expect, it } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { silencesKey } from '../../src/store/operator-keys.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig } from '../support/bridge.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { longestTurnMs } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** What somebody's patterns cost on somebody's texts, in the whole bridge. */

const redis = useRedis()
const hourMs = 3_600_000
/** Letters a and b without a period. */
const headline = Array.from({ length: 4_000 }, (_, at) => (Math.sin(at * at) > 0 ? 'a' : 'b')).join('')
const slower = Array.from({ length: 10 }, (_, nth) => ({ regex: `(?:a|b)*a[ab]{${480 + nth}}[zw]` }))
const slow = Array.from({ length: 5 }, (_, nth) => ({ regex: `(?:a|b)*a[ab]{${500 + nth}}[zw]` }))

it('slow patterns on long texts hold up neither probes nor polls, in silences and in their previews', {
  timeout: 20_000,
}, async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const { url } = await startApp(
    bridgeConfig({ redis, prefix: freshPrefix(), feed: sandbox.url, sinks: { hook: hook.url } }),
  )
  const post = (path: string, body: object) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    return fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  }
  sandbox.fireMany(4, { headline })
  await hook.received(4)
  expect((await post('/api/v1/silences', { match: { headline: slow }, for: '1h' })).status).toBe(201)
  const answers: Response[] = []
  const longestMs = await longestTurnMs(async () => {
    const previews = [1, 2].map(() =>
      post('/api/v1/silences/preview', { match: { headline: slow.slice(0, 2) } }),
    )
    sandbox.fireMany(2, { headline })
    await hook.received(6)
    answers.push(...(await Promise.all(previews)))
  })
  expect(longestMs).toBeLessThan(600)
  // A preview has seven seconds by the clock, which a busy machine may need for others.
  for (const answer of answers) {
    const { matching, detail } = (await answer.json()) as { matching?: number; detail?: string }
    expect(matching ?? detail).toBeOneOf([0, expect.stringContaining('takes longer than 7 seconds')])
  }
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
})

it('however many ask by which routes an alert would go, alerts that fire do not wait for their answers', {
  timeout: 60_000,
}, async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const sinks = { hook: hook.url, desk: hook.url }
  const routes = JSON.stringify([
    { match: { headline: [...slow, ...slower] }, sinks: ['desk'] },
    { sinks: ['hook'] },
  ])
  const { url } = await startApp(bridgeConfig({ redis, feed: sandbox.url, sinks, routes }))
  const { id } = sandbox.fire({ headline })
  await hook.received(1)
  let [answered, refused, over] = [0, 0, false]
  const asking = Promise.allSettled(
    Array.from({ length: 8 }, async () => {
      for (; !over; answered += 1) {
        const { status } = await fetch(`${url}/api/v1/alerts/main/${id}/routes`)
        if (status !== 200 && status !== 409) throw new Error(`answered with ${status}`)
        // After seven seconds by the clock, for which a busy machine needs no turn of theirs.
        if (status === 409) refused += 1
      }
    }),
  )
  await until('all are being answered', async () => answered >= 8, 20_000)
  const polls = sandbox.requests.length
  sandbox.fire({ headline })
  // Until the bridge asks for it, it has no turns.
  await until('it is asked for', () => sandbox.requests.length > polls)
  const before = answered - refused
  await hook.received(2, 40_000)
  over = true
  // An alert has every second turn; were it one of nine, each of them would be answered meanwhile.
  expect(answered - refused - before).toBeLessThan(5)
  for (const { status } of await asking) expect(status).toBe('fulfilled')
})

it('a stop does not wait for a page of slow patterns, and the page is read again', {
  timeout: 60_000,
}, async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  const config = bridgeConfig({ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url } })
  const comment = 'slow'
  const silence = { v: 1, match: { headline: slow }, startsAtMs: 0, endsAtMs: Date.now() + hourMs, comment }
  await redis
    .client()
    .hset(silencesKey(prefix), 'slow', JSON.stringify({ ...silence, startsAtMs: Date.now() }))
  const { app } = await startApp(config)
  sandbox.fireMany(100, { headline })
  const asked = sandbox.requests.length
  await until('the page is asked for', async () => sandbox.requests.length > asked)
  const before = performance.now()
  await app.stop()
  expect(performance.now() - before).toBeLessThan(6_000)
  expect(hook.requests).toHaveLength(0)
  await redis.client().del(silencesKey(prefix))
  await startApp(config)
  await hook.received(100)
})

it('a silence of an earlier version, whose pattern is too large now, lets the bridge start and is told', async () => {
  const sandbox = await startSandbox({ history: 1 })
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  const match = { headline: { regex: '(a|b){400}|.*' } }
  const older = { v: 1, match, startsAtMs: 0, endsAtMs: Date.now() + hourMs, comment: 'older' }
  await redis
    .client()
    .hset(silencesKey(prefix), 'older', JSON.stringify({ ...older, startsAtMs: Date.now() }))
  const { url } = await startApp(
    bridgeConfig({ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url } }),
  )
  await hook.received(1)
  const problem = expect.stringContaining('holds nothing back')
  expect(await api(url, '/api/v1/silences')).toMatchObject({ data: [{ id: 'older', match, problem }] })
  await until('status tells', async () => {
    const { sources } = await api<StatusView>(url, '/api/v1/status')
    return sources.some(({ notes }) => notes.some((note) => note.startsWith('silence older: ')))
  })
})
