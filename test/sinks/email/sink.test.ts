import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import PostalMime from 'postal-mime'
import { afterEach, describe, expect, test } from 'vitest'
import type { Alert } from '../../../src/alert/alert.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { emailConfigSchema } from '../../../src/sinks/email/config.ts'
import { digestMax } from '../../../src/sinks/email/message.ts'
import { createSink } from '../../../src/sinks/registry.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { startBareSmtp } from '../../support/bare-smtp.ts'
import { testAuthority } from '../../support/certificates.ts'
import { verifyDkim } from '../../support/dkim.ts'
import { withFiles } from '../../support/files.ts'
import {
  type SmtpReceiver,
  type SmtpReceiverOptions,
  type SmtpScript,
  startSmtpReceiver,
} from '../../support/smtp-receiver.ts'
import { until } from '../../support/until.ts'
import { alertOf, english, hostile, persian, persianDisplay } from '../samples.ts'

const cleanUps: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function receiving(options: SmtpReceiverOptions = {}): Promise<SmtpReceiver> {
  const receiver = await startSmtpReceiver(options)
  cleanUps.push(receiver.stop)
  return receiver
}

function sinkTo(smtp: string | Secret, fields: Record<string, unknown> = {}): Sink {
  const config = emailConfigSchema.parse({
    type: 'email',
    smtp,
    from: 'هشدارها <alerts@example.com>',
    to: ['desk@example.com', 'boss@example.com'],
    allowPrivateNetworks: true,
    ...fields,
  })
  const sink = createSink('desk', config, { display: persianDisplay })
  cleanUps.push(() => sink.close())
  return sink
}

const attempt = (target = 'desk@example.com') => ({
  number: 1,
  nowMs: Date.parse('2026-11-21T05:31:00Z'),
  signal: new AbortController().signal,
  target,
})

describe('a mail on the wire', () => {
  test('is what an independent parser reads as the alert', async () => {
    const receiver = await receiving()
    await sinkTo(receiver.url, { replyTo: 'help@example.com' }).send(persian, attempt())
    const mail = await PostalMime.parse(receiver.mails[0]?.raw ?? '')
    expect(mail).toMatchObject({
      from: { name: 'هشدارها', address: 'alerts@example.com' },
      to: [{ address: 'desk@example.com' }],
      replyTo: [{ address: 'help@example.com' }],
      subject: persian.headline,
      date: '2026-11-21T05:31:00.000Z',
      messageId: expect.stringMatching(/^<main\.4711\.[0-9a-f]{12}@example\.com>$/),
      inReplyTo: expect.stringMatching(/^<main\.rule-[0-9a-f]{12}\.2026-11-21@example\.com>$/),
    })
    expect(mail.references).toBe(mail.inReplyTo)
    expect(mail.text).toContain('آخرین قیمت ۵٬۲۱۰ ریال')
    expect(mail.html).toContain('<h1')
    const headers = new Map(mail.headers.map(({ key, value }) => [key, value]))
    expect(headers.get('auto-submitted')).toBe('auto-generated')
    expect(headers.get('x-auto-response-suppress')).toBe('All')
    expect(headers.get('list-id')).toBe('<main.alerts.example.com>')
  })

  test('that was asked for again is shown beside the first, in the same thread', async () => {
    const receiver = await receiving()
    const sink = sinkTo(receiver.url)
    await sink.send(persian, attempt())
    await sink.send(persian, { ...attempt(), requestedAtMs: Date.parse('2026-11-21T05:30:00Z') })
    const mails = await Promise.all(receiver.mails.map(({ raw }) => PostalMime.parse(raw)))
    const [first, again] = mails
    expect(again?.messageId).not.toBe(first?.messageId)
    expect(again).toMatchObject({
      inReplyTo: first?.messageId,
      references: `${first?.references} ${first?.messageId}`,
    })
    const values = mails.map(({ headers }) => headers.find(({ key }) => key === 'alert-bridge-replay')?.value)
    expect(values).toEqual([undefined, '2026-11-21T05:30:00.000Z'])
  })

  test('goes to its one recipient, whatever the alert says', async () => {
    const receiver = await receiving()
    const sink = sinkTo(receiver.url)
    expect(sink.targets).toEqual(['desk@example.com', 'boss@example.com'])
    await sink.send(hostile, attempt('boss@example.com'))
    const [received] = receiver.mails
    expect(received?.envelope).toEqual({ from: 'alerts@example.com', to: ['boss@example.com'] })
    const mail = await PostalMime.parse(received?.raw ?? '')
    expect(mail.headers.map(({ key }) => key)).not.toContain('bcc')
    expect(mail.to).toEqual([{ name: '', address: 'boss@example.com' }])
    expect(mail.attachments).toEqual([])
  })

  test('carries a signature of the domain that a receiver can verify, and that breaks with any change', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', {
      modulusLength: 2_048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    const receiver = await receiving()
    const dkim = { domain: 'example.com', selector: 'bridge', key: privateKey }
    for (const alert of [persian, hostile]) await sinkTo(receiver.url, { dkim }).send(alert, attempt())
    for (const { raw } of receiver.mails) {
      const tags = verifyDkim(raw, publicKey)
      expect([tags.get('d'), tags.get('s')]).toEqual(['example.com', 'bridge'])
      for (const name of ['from', 'to', 'subject', 'date', 'message-id'])
        expect(tags.get('h')?.toLowerCase().split(':')).toContain(name)
      expect(() => verifyDkim(raw.replace('desk@example.com', 'boss@example.com'), publicKey)).toThrow(
        'signature',
      )
      expect(() => verifyDkim(`${raw}more\r\n`, publicKey)).toThrow('body')
    }
  })

  test('waits for its key while the file of the key is half written, and does not go unsigned', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const receiver = await receiving()
    await withFiles({ key: pem }, async ({ key: file }) => {
      const dkim = { domain: 'example.com', selector: 'bridge', key: Secret.fromFile(file) }
      const sink = sinkTo(receiver.url, { dkim })
      for (const text of ['', pem.slice(0, 400)]) {
        writeFileSync(file, text)
        expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'retry', reason: 'credentials' })
      }
      expect(receiver.mails).toEqual([])
    })
  })

  test('names the recipient of another config as none of its own', async () => {
    const receiver = await receiving()
    expect(await sinkTo(receiver.url).send(persian, attempt('gone@example.com'))).toMatchObject({
      kind: 'dead',
      reason: 'unrenderable',
    })
    expect(receiver.connections()).toBe(0)
  })
})

describe('the reply', () => {
  test.each<[string, SmtpScript, Record<string, unknown>]>([
    [
      'a full mailbox',
      { rcptTo: () => ({ code: 452, text: 'mailbox full' }) },
      { kind: 'retry', reason: 'server_error', sinkFault: false },
    ],
    [
      'an unknown recipient',
      { rcptTo: () => ({ code: 550, text: 'no such user' }) },
      {
        kind: 'dead',
        reason: 'rejected',
        sinkFault: false,
        answer: { status: 550, text: 'no such user' },
      },
    ],
    [
      'a refused sender',
      { mailFrom: () => ({ code: 553, text: 'not from you' }) },
      { kind: 'dead', reason: 'rejected', sinkFault: true },
    ],
    [
      'a slow day',
      { mailFrom: () => ({ code: 451, text: 'later' }) },
      { kind: 'retry', reason: 'server_error', sinkFault: true },
    ],
    [
      'refused content',
      { data: () => ({ code: 554, text: 'looks like spam' }) },
      { kind: 'dead', reason: 'rejected', sinkFault: false },
    ],
    [
      'content for later',
      { data: () => ({ code: 421, text: 'closing' }) },
      { kind: 'retry', reason: 'server_error' },
    ],
    [
      'a closed house',
      { connect: () => ({ code: 554, text: 'no service' }) },
      { kind: 'retry', reason: 'server_error', sinkFault: true },
    ],
    [
      'silence at the recipient',
      { rcptTo: () => 'hang' },
      { kind: 'retry', reason: 'timeout', sinkFault: true },
    ],
  ])('of %s decides for this recipient', async (_name, script, expected) => {
    const receiver = await receiving()
    receiver.script(script)
    const timeout = expected['reason'] === 'timeout' ? '500ms' : '10s'
    const outcome = await sinkTo(receiver.url, { timeout }).send(persian, attempt())
    expect(outcome).toMatchObject(expected)
    expect(receiver.mails).toHaveLength(0)
  })

  test.each([
    ['a greeting that says goodbye', { connect: '221 closing' }],
    ['a greeting that is none', { connect: '250 ok' }],
    ['a login that is answered as if it were over', { AUTH: '250 ok' }],
    ['a goodbye to the message', { body: '221 closing' }],
  ])('of %s acknowledges nothing', async (_name, answers) => {
    const server = await startBareSmtp(answers)
    cleanUps.push(server.stop)
    const smtp = `smtp://user:password@127.0.0.1:${server.port}?authMethod=LOGIN`
    expect(await sinkTo(smtp, { timeout: '2s' }).send(persian, attempt())).toMatchObject({
      kind: 'retry',
      reason: 'bad_answer',
    })
  })

  test('is kept without its code, which the status says', async () => {
    const server = await startBareSmtp({ RCPT: '550-5.1.1 no such user\r\n550 5 of 550 left' })
    cleanUps.push(server.stop)
    const outcome = await sinkTo(`smtp://127.0.0.1:${server.port}`).send(persian, attempt())
    expect(outcome.answer.status).toBe(550)
    expect(outcome.answer.text).toMatch(/^5\.1\.1 no such user\s5 of 550 left$/)
    const taken = await startBareSmtp({ body: '250 2.0.0 queued' })
    cleanUps.push(taken.stop)
    const sent = await sinkTo(`smtp://127.0.0.1:${taken.port}`).send(persian, attempt())
    expect(sent).toMatchObject({ kind: 'delivered', answer: { status: 250, text: '2.0.0 queued' } })
  })

  test('for one recipient leaves the others alone', async () => {
    const receiver = await receiving()
    receiver.script({
      rcptTo: (address) => (address.startsWith('desk') ? { code: 550, text: 'gone' } : undefined),
    })
    const sink = sinkTo(receiver.url)
    const outcomes = await Promise.all(sink.targets.map((target) => sink.send(persian, attempt(target))))
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(['dead', 'delivered'])
    expect(receiver.mails.map((mail) => mail.envelope.to)).toEqual([['boss@example.com']])
  })
})

describe('the login', () => {
  const login = { user: 'bridge', password: 'right' }

  test('is used, and a wrong one waits for the operator', async () => {
    const receiver = await receiving({ login })
    expect(await sinkTo(receiver.url).send(persian, attempt())).toMatchObject({ kind: 'delivered' })
    expect(receiver.mails[0]?.user).toBe('bridge')
    const wrong = await sinkTo(receiver.url.replace('right', 'wrongPassword')).send(persian, attempt())
    expect(wrong).toMatchObject({
      kind: 'retry',
      reason: 'credentials',
      sinkFault: true,
      answer: { status: 535 },
    })
    const none = await sinkTo(receiver.url.replace('bridge:right@', '')).send(persian, attempt())
    expect(none).toMatchObject({ kind: 'retry', reason: 'credentials', sinkFault: true })
  })

  test('in a file may change without a restart', async () => {
    const receiver = await receiving({ login })
    await withFiles({ old: receiver.url.replace('right', 'outdated'), now: receiver.url }, async (paths) => {
      let path = paths.old
      const rotating = Object.assign(Secret.fromFile(paths.old), {
        reveal: () => Secret.fromFile(path).reveal(),
      })
      const sink = sinkTo(rotating)
      expect(await sink.send(persian, attempt())).toMatchObject({ reason: 'credentials' })
      path = paths.now
      expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'delivered' })
    })
  })
})

describe('TLS', () => {
  test('is required of smtp:// servers: one that does not offer it gets neither login nor mail', async () => {
    const receiver = await receiving({ login: { user: 'bridge', password: 'right' } })
    const outcome = await sinkTo(receiver.url, { startTls: 'required' }).send(persian, attempt())
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'tls', sinkFault: true })
    expect(receiver.mails).toHaveLength(0)
  })

  test.each(['starttls', 'implicit'] as const)(
    'by %s is checked against the authority of the config',
    async (tls) => {
      const receiver = await receiving({ tls })
      await withFiles({ ca: testAuthority }, async ({ ca }) => {
        const trusting = { startTls: 'required', tls: { ca, serverName: 'mail.test' } }
        expect(await sinkTo(receiver.url, trusting).send(persian, attempt())).toMatchObject({
          kind: 'delivered',
        })
        expect(receiver.mails[0]?.secure).toBe(true)
        const misnamed = { ...trusting, tls: { ca, serverName: 'other.test' } }
        expect(await sinkTo(receiver.url, misnamed).send(persian, attempt())).toMatchObject({ reason: 'tls' })
      })
      expect(await sinkTo(receiver.url, { startTls: 'required' }).send(persian, attempt())).toMatchObject({
        kind: 'retry',
        reason: 'tls',
      })
      expect(receiver.mails).toHaveLength(1)
    },
  )

  test('is used where it is offered, when it is opportunistic', async () => {
    const plain = await receiving()
    const upgrading = await receiving({ tls: 'starttls' })
    await withFiles({ ca: testAuthority }, async ({ ca }) => {
      const settings = { startTls: 'opportunistic', tls: { ca } }
      await sinkTo(plain.url, settings).send(persian, attempt())
      await sinkTo(upgrading.url, settings).send(persian, attempt())
    })
    expect([plain.mails[0]?.secure, upgrading.mails[0]?.secure]).toEqual([false, true])
  })
})

describe('the pool', () => {
  test('sends many mails over few connections', async () => {
    const receiver = await receiving()
    const sink = sinkTo(receiver.url, { concurrency: 2 })
    await Promise.all(Array.from({ length: 20 }, (_, id) => sink.send(alertOf({ id: id + 1 }), attempt())))
    expect(receiver.mails).toHaveLength(20)
    expect(receiver.connections()).toBeLessThanOrEqual(2)
  })

  test('goes on after a send that was called off', async () => {
    const receiver = await receiving()
    receiver.script({ rcptTo: () => 'hang' })
    const sink = sinkTo(receiver.url, { concurrency: 1, timeout: '20s' })
    const stop = new AbortController()
    const sending = sink.send(persian, { ...attempt(), signal: stop.signal })
    setTimeout(() => stop.abort(), 100)
    expect(await sending).toMatchObject({ kind: 'retry', reason: 'aborted' })
    receiver.script({})
    expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'delivered' })
  })
})

describe('a server', () => {
  const emptyLines = '\r\n'.repeat(300_000)

  test.each([
    ['its greeting', { connect: emptyLines }],
    ['an answer', { RCPT: emptyLines }],
    ['its answer to the message', { body: `250 taken${emptyLines}` }],
  ])('that sends empty lines with %s is let go, and takes nothing of the process', async (_when, flood) => {
    const answers: Record<string, string> = { ...flood }
    const server = await startBareSmtp(answers)
    cleanUps.push(server.stop)
    const sink = sinkTo(`smtp://127.0.0.1:${server.port}`, { concurrency: 1, timeout: '4s' })
    const outcome = await sink.send(persian, attempt())
    expect(outcome).toMatchObject(
      'body' in flood ? { kind: 'delivered' } : { kind: 'retry', reason: 'bad_answer' },
    )
    for (const command of Object.keys(answers)) delete answers[command]
    expect(await sink.send(english, attempt())).toMatchObject({ kind: 'delivered' })
    expect(server.open()).toBe(1)
  })

  test('that goes silent after a refusal keeps no place of the pool and no connection', async () => {
    const answers: Record<string, string> = { RCPT: '450 later', RSET: '' }
    const server = await startBareSmtp(answers)
    cleanUps.push(server.stop)
    const sink = sinkTo(`smtp://127.0.0.1:${server.port}`, { concurrency: 1, timeout: '1s' })
    expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'retry', reason: 'server_error' })
    delete answers['RCPT']
    expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'retry', reason: 'timeout' })
    expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'delivered' })
    await until('the silent connection is closed', () => server.open() === 1, 10_000)
    answers['RCPT'] = '450 later'
    expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'retry', reason: 'server_error' })
    await sink.close()
    await until('none is left', () => server.open() === 0, 10_000)
  })
})

describe('a digest', () => {
  const mailed = async (alerts: Alert[], target = 'desk@example.com') => {
    const receiver = await receiving()
    const sink = sinkTo(receiver.url, { digest: '15m' })
    const outcome = await sink.batch?.send(
      alerts.map((alert) => ({ alert })),
      attempt(target),
    )
    return { outcome, raw: receiver.mails[0]?.raw ?? '', envelope: receiver.mails[0]?.envelope }
  }

  test('is planned for the marks of the clock in the zone of the config', () => {
    expect(sinkTo('smtp://localhost', { digest: '15m' }).batch?.plan).toMatchObject({
      kind: 'digest',
      max: digestMax,
      everyMs: 900_000,
      timeZone: 'Asia/Tehran',
    })
    expect(sinkTo('smtp://localhost').batch).toBeUndefined()
  })

  test('of long alerts is several mails, each of which Gmail shows whole', async () => {
    const receiver = await receiving()
    const { batch } = sinkTo(receiver.url, { digest: '15m' })
    const long = Array.from({ length: digestMax }, (_, index) => ({
      alert: alertOf({ id: index + 1, why: 'دلیل '.repeat(700) }),
    }))
    const parts = batch?.split(long) ?? []
    expect(parts.flat()).toHaveLength(digestMax)
    for (const part of parts)
      expect(await batch?.send(part, attempt('desk@example.com'))).toMatchObject({ kind: 'delivered' })
    const mails = await Promise.all(receiver.mails.map(({ raw }) => PostalMime.parse(raw)))
    const bytes = mails.map(({ html }) => Buffer.byteLength(html ?? ''))
    expect(bytes.length).toBeGreaterThan(1)
    expect(Math.max(...bytes)).toBeLessThan(102_000)
  })

  test('is one mail with every alert, to its one recipient', async () => {
    const { outcome, raw, envelope } = await mailed([persian, english, hostile])
    expect(outcome).toMatchObject({ kind: 'delivered' })
    expect(envelope).toEqual({ from: 'alerts@example.com', to: ['desk@example.com'] })
    const mail = await PostalMime.parse(raw)
    expect(mail.subject).toBe(`۳ هشدار: ${persian.headline}`)
    for (const part of [mail.text, mail.html])
      for (const headline of [persian.headline, 'Gold crossed above its 200-day average'])
        expect(part).toContain(headline)
  })

  test('has a Message-ID by what it holds and whom it is for, in whatever order', async () => {
    const idOf = async (alerts: Alert[], target?: string) =>
      (await PostalMime.parse((await mailed(alerts, target)).raw)).messageId
    const id = await idOf([persian, english])
    expect(await idOf([english, persian])).toBe(id)
    expect(await idOf([persian, hostile])).not.toBe(id)
    expect(await idOf([persian, english], 'boss@example.com')).not.toBe(id)
  })
})
