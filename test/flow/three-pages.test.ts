import PostalMime from 'postal-mime'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { plain } from '../../src/app/demo.ts'
import { startApp } from '../support/app.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** The main job on real input: 250 alerts over three pages, real Redis, real HTTP, real SMTP. */

const redis = useRedis()
const secrets = [
  `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  `whsec_${Buffer.alloc(32, 9).toString('base64')}`,
]
const count = 250

describe('250 alerts over three pages', () => {
  it('arrive exactly once at each of three sinks', { timeout: 60_000 }, async () => {
    const sandbox = await startSandbox({ history: 0 })
    const webhook = await startWebhookReceiver()
    const slack = await startSlackReceiver()
    const smtp = await startSmtpReceiver()
    const fired = sandbox.fireMany(count)
    const { app, url } = await startApp(`
      redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
      http: { listen: "127.0.0.1:0" }
      sources:
        main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, poll: { every: 2s }, budget: { unitsPerDay: 50000 } }
      sinks:
        hook: { type: webhook, url: "${webhook.url}", secret: [${secrets.join(', ')}], allowPrivateNetworks: true }
        ops: { type: slack, url: "${slack.url}", rateLimit: { max: 200, per: 1s }, allowPrivateNetworks: true }
        desk: { type: email, smtp: "${smtp.url}", startTls: "off", from: Alerts <alerts@example.com>, to: [desk@example.com], rateLimit: { max: 500, per: 1s }, allowPrivateNetworks: true }
      routes: [{ sinks: [hook, ops, desk] }]
    `)

    await webhook.received(count, 20_000)
    await slack.received(count, 20_000)
    await smtp.received(count, 20_000)
    const polls = sandbox.requests.length
    await until('another poll', () => sandbox.requests.length > polls)

    const ids = fired.map(({ id }) => `main.${id}`).sort()
    expect(webhook.requests.map(({ headers }) => String(headers['webhook-id'])).sort()).toEqual(ids)
    expect(slack.requests).toHaveLength(count)
    expect(smtp.mails).toHaveLength(count)

    for (const request of webhook.requests)
      for (const secret of secrets) new Webhook(secret).verify(request.body, headersOf(request.headers))
    const bodies = webhook.requests.map(
      ({ body }) => JSON.parse(body) as { data: { delivery: { id: number } } },
    )
    for (const row of fired) {
      const body = bodies.find(({ data }) => data.delivery.id === row.id)
      expect(body).toEqual({
        type: 'alert.fired',
        timestamp: row.firedAt,
        data: { source: 'main', delivery: row },
      })
    }

    const mails = await Promise.all(smtp.mails.map(({ raw }) => PostalMime.parse(raw)))
    const subjects = new Set(mails.map(({ subject }) => subject))
    expect(new Set(mails.map(({ messageId }) => messageId)).size).toBe(count)
    expect(mails.every(({ html, text }) => (html?.length ?? 0) > 0 && (text?.length ?? 0) > 0)).toBe(true)
    for (const { headline } of fired) expect(subjects).toContain(headline)
    const texts = slack.messages().map(({ text }) => plain(String(text)))
    for (const { headline } of fired) expect(texts.some((text) => text.includes(plain(headline)))).toBe(true)

    const metrics = await (await fetch(`${url}/metrics`)).text()
    for (const sink of ['hook', 'ops', 'desk'])
      expect(metrics).toContain(`alert_bridge_sends_total{sink="${sink}",result="delivered"} ${count}`)
    expect(metrics).toContain(`alert_bridge_alerts_seen_total{source="main"} ${count}`)
    expect((await app.metrics.alertsUnrouted.get()).values[0]?.value).toBe(0)
    const pages = sandbox.requests.map(({ page }) => page)
    expect(pages[0]).toBe(1)
    // After five seconds beneath it, the first page is read again in between.
    expect(pages.filter((page) => page !== 1)).toEqual([2, 3])
  })

  it('go once to each sink that several routes name, and nowhere without a route', {
    timeout: 30_000,
  }, async () => {
    const sandbox = await startSandbox()
    const webhook = await startWebhookReceiver()
    const wanted = sandbox.fireMany(3, { kind: 'price', symbol: 'فولاد' })
    const unrouted = sandbox.fireMany(2, { kind: 'filing', symbol: null })
    const { app } = await startApp(`
      redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
      http: { listen: "127.0.0.1:0" }
      sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning } }
      sinks: { hook: { type: webhook, url: "${webhook.url}", allowPrivateNetworks: [127.0.0.0/8] } }
      routes:
        - { match: { kind: [price] }, sinks: [hook] }
        - { match: { symbol: [فولاد] }, sinks: [hook] }
    `)
    await webhook.received(wanted.length)
    await until('the unrouted ones are counted', async () => {
      const { values } = await app.metrics.alertsUnrouted.get()
      return values[0]?.value === unrouted.length
    })
    expect(webhook.requests).toHaveLength(wanted.length)
  })
})

function headersOf(headers: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}
