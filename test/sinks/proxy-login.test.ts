import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/lib/secret.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { testFolder } from '../support/process.ts'
import { type ForwardProxy, startProxy } from '../support/proxy.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { sendOnce } from './sending.ts'

let proxy: ForwardProxy
let receiver: WebhookReceiver

beforeEach(async () => {
  proxy = await startProxy()
  receiver = await startWebhookReceiver()
})
afterEach(() => Promise.all([proxy.stop(), receiver.stop()]))

const send = (fields: Readonly<Record<string, unknown>>, login: string) =>
  sendOnce({ ...fields, proxy: proxy.url.replace('//', `//${login}@`) })

/** What a proxy that says too much writes: the header, and what is in it. */
function repeated(header: string): string {
  const plain = Buffer.from(header.replace('Basic ', ''), 'base64').toString()
  const [user, password = ''] = plain.split(/:(.*)/s)
  return `denied: ${header} is ${plain}; ${user}, "${password}", ${encodeURIComponent(password)}`
}

const types: readonly [string, (origin: string) => Record<string, unknown>][] = [
  ['webhook', (origin) => ({ type: 'webhook', url: `${origin}/hook` })],
  ['http', (origin) => ({ type: 'http', url: `${origin}/{{ alertId }}` })],
  ['slack', (origin) => ({ type: 'slack', url: `${origin}/services/T/B/x` })],
  ['discord', (origin) => ({ type: 'discord', url: `${origin}/api/webhooks/1/t` })],
  ['teams', (origin) => ({ type: 'teams', url: `${origin}/` })],
  ['ntfy', (baseUrl) => ({ type: 'ntfy', baseUrl, topic: 'alerts' })],
  ['telegram', (baseUrl) => ({ type: 'telegram', baseUrl, token: `1:${'t'.repeat(30)}`, chatId: 1 })],
  ['pagerduty', (baseUrl) => ({ type: 'pagerduty', baseUrl, routingKey: 'k'.repeat(32) })],
]

describe.each(types)('a proxy between the bridge and %s', (_type, fields) => {
  it.each([
    ['http', 'bob:hunter2-secret'],
    ['http', 'bob:pw'],
    ['http', 'bob:p%40ss%2Fw%C3%B6rd%22x'],
    ['https', 'bob:hunter2-secret'],
  ])(
    'that refuses with its login in the answer, over %s as %s: tried again, and no login is kept',
    async (protocol, login) => {
      proxy.refuse(repeated)
      const outcome = await send(fields(`${protocol}://receiver.test`), login)
      expect(proxy.seen).toHaveLength(1)
      expect(outcome).toMatchObject({ kind: 'retry', reason: 'connect', sinkFault: true })
      expectNoLogin(outcome, login)
    },
  )

  it('behind which the receiver repeats the login: none of it is kept', async () => {
    const login = 'bob:hunter2-secret'
    const encoded = Buffer.from(login).toString('base64')
    receiver.answerWith({ status: 403, body: `no way: ${encoded} ${login} hunter2-secret` })
    const outcome = await send(fields(`http://localhost:${receiver.port}`), login)
    expect(outcome).toMatchObject({ answer: { status: 403, text: expect.stringContaining('no way') } })
    expectNoLogin(outcome, login)
  })
})

it('an address of a proxy that is none is not repeated', async () => {
  const file = join(testFolder(), 'proxy')
  writeFileSync(file, 'http//bob:hunter2-secret@proxy')
  const outcome = await sendOnce({ type: 'webhook', url: 'https://a.test/', proxy: Secret.fromFile(file) })
  expect(outcome).toMatchObject({ kind: 'retry', reason: 'credentials' })
  expect(JSON.stringify(outcome)).not.toContain('hunter2')
})

function expectNoLogin(outcome: Outcome, login: string): void {
  const told = JSON.stringify(outcome)
  const plain = decodeURIComponent(login)
  const password = plain.slice(plain.indexOf(':') + 1)
  const forms = [login, plain, password, encodeURIComponent(password), Buffer.from(plain).toString('base64')]
  for (const form of forms) expect(told).not.toContain(form)
}
