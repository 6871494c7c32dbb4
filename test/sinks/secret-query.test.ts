import { expect, test } from 'vitest'
import { credentialsIn } from '../../src/sinks/secret-url.ts'
import { serve } from './serving.ts'

/** A receiver may repeat a credential of its address, alone or in the address as web applications do for an unknown one, of a template or a header. */

const key = 'canaryOfOneWord'

test.each(['webhook', 'http', 'slack', 'teams', 'discord'])(
  'a short key in the query of a %s sink is not shown',
  async (type) => {
    for (const body of [
      `Cannot POST /in?key=${key}`,
      `no such key: ${key}`,
      `no such key: ${key.slice(0, -2)}…`,
    ]) {
      const { outcome } = await serve({
        config: (origin) => ({ type, url: `${origin}/in?env=prod&key=${key}` }),
        answer: { status: 403, body },
      })
      expect(outcome.answer.text).toContain('[redacted]')
      expect(outcome.answer.text).not.toContain(key.slice(0, 9))
    }
  },
)

test.each(['webhook', 'http', 'slack', 'teams', 'discord'])(
  'a query of a %s sink that is nothing but a key is not shown',
  async (type) => {
    // The last two end like base64 whose length is filled up.
    for (const query of [key, `${key}=`, `${key}==`]) {
      const { outcome } = await serve({
        config: (origin) => ({ type, url: `${origin}/in?${query}` }),
        answer: { status: 403, body: `Cannot POST /in?${query}; no such key: ${query}` },
      })
      expect(outcome.answer.text).toContain('[redacted]')
      expect(outcome.answer.text).not.toContain(key)
    }
  },
)

test.each([
  ['webhook', (origin: string) => ({ url: `${origin}/gateway-${key}7/in` })],
  [
    'telegram',
    (origin: string) => ({
      baseUrl: `${origin}/gateway-${key}7`,
      token: `123456:${'a'.repeat(35)}`,
      chatId: 1,
    }),
  ],
  ['pagerduty', (origin: string) => ({ baseUrl: `${origin}/gateway-${key}7`, routingKey: 'b'.repeat(32) })],
  ['ntfy', (origin: string) => ({ baseUrl: `${origin}/gateway-${key}7`, topic: 'alerts' })],
])('a key in the path of a %s sink is not shown', async (type, address) => {
  const { outcome } = await serve({
    config: (origin) => ({ type, ...address(origin) }),
    answer: { status: 403, body: `Cannot POST /gateway-${key}7/` },
  })
  expect(outcome.answer.text).toBe('Cannot POST /[redacted]/')
})

test.each(['webhook', 'http'])('a key in the template of a %s sink is not shown', async (type) => {
  const template = '{ "token": "canary-of-some-words", "user": "u7canary", "message": "{{ headline }}" }'
  const { outcome, body } = await serve({
    config: (origin) => ({ type, url: `${origin}/in`, template }),
    answer: { status: 400, body: 'got {"token":"canary-of-some-words"} of u7canary, which is no key' },
  })
  expect(body).toMatchObject({ token: 'canary-of-some-words', user: 'u7canary' })
  expect(outcome.answer.text).toBe('got {"token":"[redacted]"} of [redacted], which is no key')
})

test.each([
  [
    'application/json',
    '{ "user": "desk", "password": "rivercanary", "text": "{{ headline }}" }',
    'rivercanary',
  ],
  ['application/json', `{ "auth": { "api_key": "two canaries/here" } }`, 'two canaries/here'],
  [
    'application/x-www-form-urlencoded',
    'user=desk&userToken=river%2Fcanary&text={{ headline }}',
    'river/canary',
  ],
  ['text/xml', '<m><Secret>rivercanary</Secret><t>{{ headline }}</t></m>', 'rivercanary'],
  // Generated passwords have signs in them, also those that mean something in JSON, XML or a template.
  ['application/json', '{ "password": "river{!canary" }', 'river{!canary'],
  ['application/json', String.raw`{ "password": "ri\"ver\\canary{" }`, String.raw`ri"ver\canary{`],
  ['text/xml', '<m><password xsi:type="xsd:string">ri"ver{canary</password></m>', 'ri"ver{canary'],
  ['text/xml', '<m><password><![CDATA[ri<ver&canary]]></password></m>', 'ri<ver&canary'],
  ['application/json', '{ "Authorization": "Bearer rivercanary" }', 'rivercanary'],
])(
  'what a template in %s gives a name that sounds secret is not shown',
  async (contentType, template, secret) => {
    for (const type of ['webhook', 'http']) {
      const { outcome } = await serve({
        config: (origin) => ({ type, url: `${origin}/in`, template, contentType }),
        answer: { status: 422, body: `missing: to; input: ${JSON.stringify({ user: 'desk', of: secret })}` },
      })
      expect(outcome.answer.text).toBe('missing: to; input: {"user":"desk","of":"[redacted]"}')
    }
  },
)

test.each([
  ['Bearer canaryOfOneWord', 'invalid token: canaryOfOneWord, ask for another'],
  ['Token token="canaryOfOneWord", id=7', 'token canaryOfOneWord is revoked'],
  ['ApiKey desk:canary0fTheDesk', 'canary0fTheDesk is no key of desk'],
  [
    `Basic ${Buffer.from('desk:canaryOfOneWord').toString('base64')}`,
    'desk may not log in with canaryOfOneWord',
  ],
  [`Basic ${Buffer.from('u7canary:x').toString('base64')}`, 'no such user: u7canary, sorry'],
])('a credential within a header, as in %s, is not shown alone', async (value, body) => {
  for (const type of ['webhook', 'http']) {
    const { outcome } = await serve({
      config: (origin) => ({
        ...{ type, url: `${origin}/in`, headers: { Authorization: value } },
        ...(type === 'http' ? { template: '{}' } : {}),
      }),
      answer: { status: 401, body },
    })
    expect(outcome.answer.text).toBe(body.replace(/\w*canary\w*/, '[redacted]'))
  }
})

test('a user name that is a key is not shown', async () => {
  const body = 'no such user: u7canaryOfOneWord, sorry'
  const auth = { basic: { username: 'u7canaryOfOneWord', password: 'x' } }
  const { outcome } = await serve({
    config: (origin) => ({ type: 'http', url: `${origin}/in`, template: '{}', auth }),
    answer: { status: 401, body },
  })
  expect(outcome.answer.text).toBe('no such user: [redacted], sorry')
})

test.each(['/in?auth=Bearer%20canaryOfOneWord', '/in?a=1;key=canaryOfOneWord', '/in/key:canaryOfOneWord/x'])(
  'a credential that is a part of %s is not shown alone',
  async (path) => {
    for (const type of ['webhook', 'http', 'slack', 'teams', 'discord']) {
      const { outcome } = await serve({
        config: (origin) => ({ type, url: `${origin}${path}` }),
        answer: { status: 403, body: 'canaryOfOneWord is no key, sorry' },
      })
      expect(outcome.answer.text).toBe('[redacted] is no key, sorry')
    }
  },
)

test.each([['a'], ['a='], ['a '], [': '], ['"']])(
  'a text of 65,536 characters like %s is searched at once',
  (part) => {
    const fromMs = performance.now()
    credentialsIn(part.repeat(65_536 / part.length))
    // By squares it took 25 s.
    expect(performance.now() - fromMs).toBeLessThan(2_500)
  },
)
