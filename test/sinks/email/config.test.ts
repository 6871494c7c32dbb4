import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressProblem, parseMailbox } from '../../../src/sinks/email/address.ts'
import { emailConfigSchema } from '../../../src/sinks/email/config.ts'
import { parseSmtpUrl } from '../../../src/sinks/email/smtp-url.ts'

const base = {
  type: 'email',
  smtp: 'smtps://bridge:secret@mail.example.com',
  from: 'Alerts <alerts@example.com>',
  to: ['desk@example.com'],
}
function keyPem(kind: 'ed25519' | 'rsa'): string {
  const { privateKey } =
    kind === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2_048 }) : generateKeyPairSync('ed25519')
  return String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
}

const problems = (fields: Record<string, unknown>) =>
  emailConfigSchema.safeParse({ ...base, ...fields }).error?.issues.map((issue) => issue.path.join('.')) ?? []

describe('the config', () => {
  test('takes what the contract shows', () => {
    expect(emailConfigSchema.parse(base)).toMatchObject({
      to: ['desk@example.com'],
      timeout: 10_000,
      concurrency: 2,
    })
  })

  test.each([
    ['smtp', { smtp: 'https://mail.example.com' }],
    ['from', { from: 'Alerts <alerts@example.com>\r\nBcc: evil@example.com' }],
    ['to', { to: [] }],
    ['to', { to: Array.from({ length: 51 }, (_, index) => `desk${index}@example.com`) }],
    ['to.0', { to: ['desk@example.com\r\nBcc: evil@example.com'] }],
    ['to.0', { to: ['Desk <desk@example.com>'] }],
    ['to.1', { to: ['desk@example.com', 'DESK@example.com'] }],
    ['replyTo', { replyTo: 'a@b, c@d' }],
    ['startTls', { startTls: 'off' }],
    ['startTls', { startTls: 'maybe', allowPrivateNetworks: true }],
    ['dkim.key', { dkim: { domain: 'example.com', selector: 'a', key: 'no key' } }],
    ['dkim.key', { dkim: { domain: 'example.com', selector: 'a', key: keyPem('ed25519') } }],
    ['dkim.key', { dkim: { domain: 'example.com', selector: 'a', key: keyPem('rsa').slice(0, 400) } }],
    ['dkim.domain', { dkim: { domain: 'exa mple', selector: 'a', key: keyPem('rsa') } }],
  ])('refuses %s of %o', (path, fields) => {
    expect(problems(fields)).toContain(path)
  })

  test('quotes no part of an SMTP address', () => {
    for (const smtp of [
      'smtp://canary',
      'http://u:canary@h',
      'smtp://u:canary%zz@h',
      'smtp://u:canary@h/path',
    ])
      expect(JSON.stringify(emailConfigSchema.safeParse({ ...base, smtp }).error ?? '')).not.toContain(
        'canary',
      )
  })
})

describe('an SMTP address', () => {
  test.each([
    ['smtp://mail.example.com', { port: 587, implicitTls: false, user: undefined }],
    ['smtps://mail.example.com', { port: 465, implicitTls: true }],
    ['smtp://user:p%40ss%2Fword@mail.example.com:25', { port: 25, user: 'user', password: 'p@ss/word' }],
    ['smtp://user%40example.com:p@mail.example.com', { user: 'user@example.com' }],
    [
      'smtp://mail.example.com?name=bridge.example.com&authMethod=login',
      { name: 'bridge.example.com', authMethod: 'LOGIN' },
    ],
    ['smtp://[::1]:2525', { host: '[::1]', port: 2525 }],
  ])('%s is understood', (text, server) => {
    expect(parseSmtpUrl(text)).toMatchObject({ ok: true, server })
  })

  test.each([
    'mail.example.com:25',
    'smtp://',
    'smtp://user@mail.example.com',
    'smtp://mail.example.com/path',
    'smtp://mail.example.com?tls.rejectUnauthorized=false',
    'smtp://mail.example.com?authMethod=XOAUTH2',
  ])('%s is refused', (text) => {
    expect(parseSmtpUrl(text)).toMatchObject({ ok: false })
  })
})

describe('an address', () => {
  test.each(['desk@example.com', 'a.b+c@sub.example.co', 'root@localhost', "o'neil@example.com"])(
    '%s is one',
    (text) => {
      expect(addressProblem(text)).toBeUndefined()
    },
  )

  test.each([
    'desk',
    '@example.com',
    'desk@',
    'a@b@c',
    'a b@example.com',
    'a@example.com,b@example.com',
    'a@example.com;b@example.com',
    '"a b"@example.com',
    'a@-example.com',
    'a@example..com',
    '.a@example.com',
    `${'a'.repeat(65)}@example.com`,
    'a@example.com\n',
    'قیمت@example.com',
    '<a@example.com>',
  ])('%j is none', (text) => {
    expect(addressProblem(text)).toBeDefined()
  })

  test('that passes holds nothing that a mailer could read as another recipient', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.constantFrom(',', ';', '\n', '\r', ' ', '<', '"', '('),
        fc.string(),
        (a, mark, b) => {
          expect(addressProblem(`${a}${mark}${b}@example.com`)).toBeDefined()
        },
      ),
    )
  })
})

test.each([
  ['desk@example.com', { name: '', address: 'desk@example.com' }],
  ['Desk <desk@example.com>', { name: 'Desk', address: 'desk@example.com' }],
  ['"Desk, Tehran" <desk@example.com>', { name: 'Desk, Tehran', address: 'desk@example.com' }],
  ['هشدارها <desk@example.com>', { name: 'هشدارها', address: 'desk@example.com' }],
  ['<desk@example.com>', { name: '', address: 'desk@example.com' }],
  ['Desk <desk@example.com> <b@example.com>', undefined],
  ['De\nsk <desk@example.com>', undefined],
  ['Desk', undefined],
])('the mailbox %j is %o', (text, mailbox) => {
  expect(parseMailbox(text)).toEqual(mailbox)
})
