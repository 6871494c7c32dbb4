import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../../src/lib/secret.ts'
import { webhookConfigSchema } from '../../../src/sinks/webhook/config.ts'

const url = 'https://hooks.example.com/alerts'
const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
const parse = (fields: Record<string, unknown>) =>
  webhookConfigSchema.safeParse({ type: 'webhook', url, ...fields })
const problems = (fields: Record<string, unknown>) =>
  parse(fields).error?.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) ?? []

test('the defaults are those of the contract', () => {
  expect(parse({}).data).toMatchObject({
    timeout: 10_000,
    concurrency: 20,
    retry: { attempts: 11, initialDelay: 5_000, maxDelay: 28_800_000 },
    allowPrivateNetworks: false,
    headers: {},
  })
  expect(parse({}).data).not.toHaveProperty('rateLimit')
  expect(parse({}).data).not.toHaveProperty('expireAfter')
})

test('every setting of the contract is taken', () => {
  const result = parse({
    secret: [secretOf(24), secretOf(64), Secret.fromFile('/run/secrets/hook')],
    headers: { 'X-Env': 'prod' },
    timeout: '3s',
    rateLimit: { max: 50, per: '1s' },
    retry: { attempts: 3 },
    allowPrivateNetworks: ['10.0.0.0/8', 'fd00::/8'],
    auth: { basic: { username: 'bridge', password: 'p' } },
    tls: { ca: 'ca.pem', cert: 'c.pem', key: 'k.pem', serverName: 'hooks.internal' },
    proxy: 'http://user:pass@proxy.example.com:3128',
  })
  expect(result.data).toMatchObject({ timeout: 3_000, retry: { attempts: 3, initialDelay: 5_000 } })
})

describe('refuses, with the path', () => {
  test.each([
    ['url', { url: 'ftp://example.com' }],
    ['url', { url: 'https://user:pass@example.com/' }],
    ['url', { url: 'not an address' }],
    ['secret', { secret: 'whsec_c2hvcnQ=' }],
    ['secret', { secret: secretOf(65) }],
    ['secret', { secret: secretOf(32).replace('whsec_', '') }],
    ['secret', { secret: [] }],
    ['headers.X-Bad', { headers: { 'X-Bad': 'a\r\nX-Evil: b' } }],
    ['headers.X-Letters', { headers: { 'X-Letters': 'قیمت' } }],
    ['headers.X Space', { headers: { 'X Space': 'a' } }],
    ['headers.Webhook-Id', { headers: { 'Webhook-Id': 'mine' } }],
    ['headers.Alert-Bridge-Replay', { headers: { 'Alert-Bridge-Replay': 'now' } }],
    ['headers.Transfer-Encoding', { headers: { 'Transfer-Encoding': 'chunked' } }],
    ['headers.host', { headers: { host: 'elsewhere' } }],
    ['headers.x-env', { headers: { 'X-Env': 'a', 'x-env': 'b' } }],
    ['headers.AUTHORIZATION', { auth: { bearer: 'a' }, headers: { AUTHORIZATION: 'b' } }],
    ['auth', { auth: {} }],
    ['auth', { auth: { bearer: 'a', basic: { username: 'a', password: 'b' } } }],
    ['auth.basic.username', { auth: { basic: { username: 'a:b', password: 'c' } } }],
    ['timeout', { timeout: '10m' }],
    ['timeout', { timeout: 10 }],
    ['retry.attempts', { retry: { attempts: 0 } }],
    ['concurrency', { concurrency: 0 }],
    ['allowPrivateNetworks.0', { allowPrivateNetworks: ['10.0.0.0'] }],
    ['tls', { tls: { cert: 'c.pem' } }],
    ['proxy', { proxy: 'socks5://proxy' }],
    ['', { timeOut: '10s' }],
  ])('%s of %o', (path, fields) => {
    expect(problems(fields).map((problem) => problem.slice(0, problem.indexOf(':')))).toContain(path)
  })
})

test('a secret is quoted neither by a mistake nor by what was parsed', () => {
  const canary = 'whsec_canaryCanaryCanary'
  const bad = parse({ secret: canary, auth: { bearer: 'canaryBearer\n' }, proxy: 'canaryProxy' })
  expect(JSON.stringify(bad.error?.issues)).not.toMatch(/canary/i)
  const good = parse({ auth: { bearer: 'canaryBearer' }, headers: { 'X-Key': 'canaryHeader' } })
  expect(good.success).toBe(true)
  expect(inspect(good.data, { depth: 9 }) + JSON.stringify(good.data)).not.toMatch(/canary/i)
})
