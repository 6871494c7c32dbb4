import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Alert } from '../../../src/alert/alert.ts'
import { discordMessage } from '../../../src/sinks/discord/message.ts'
import { alertOf, english, englishDisplay, hostile, persian, persianDisplay } from '../samples.ts'
import { page, refusalPages, serve } from '../serving.ts'

const config = (origin: string) => ({ type: 'discord', url: `${origin}/api/webhooks/1/token?thread_id=5` })
const embedOf = (alert: Alert, display = englishDisplay) => discordMessage({ alert }, display).embeds[0]

/** Where Discord reads markup; a footer is plain. */
function markedUp(alert: Alert, display = englishDisplay): string[] {
  const { title, description = '', fields } = embedOf(alert, display)
  return [title, description, ...fields.map(({ value }) => value)]
}

describe('the message', () => {
  test.each([
    ['persian', persian, persianDisplay],
    ['english', english, englishDisplay],
    ['hostile', hostile, englishDisplay],
  ] as const)('of the %s sample is the one that was looked at', async (name, alert, display) => {
    const text = `${JSON.stringify(discordMessage({ alert }, display, 'Alerts'), null, 2)}\n`
    await expect(text).toMatchFileSnapshot(`../golden/discord-${name}.json`)
  })

  test('is waited for, mentions nobody, and goes to the thread that the address names', async () => {
    const { request, body } = await serve({ config })
    expect(request.path).toBe('/api/webhooks/1/token?thread_id=5&wait=true')
    expect(body['allowed_mentions']).toEqual({ parse: [] })
    expect(body).not.toHaveProperty('content')
  })
})

describe('upstream text', () => {
  const nasty = fc.stringMatching(/^[\\*_~`|<>[\](){}#:@.a-z1 \n\u0627-\u064a-]{0,60}$/u)

  test('has every mark of Discord taken by its word', () => {
    fc.assert(
      fc.property(nasty, nasty, nasty, (headline, why, symbol) => {
        for (const text of markedUp(alertOf({ headline, why, symbol }))) {
          const bare = text.replace(/\\[\\*_~`|<>[\](){}#:@-]/g, '')
          expect(bare).not.toMatch(/[\\*_~`|<>[\]#@]/)
          expect(text).not.toContain('://')
        }
      }),
    )
  })

  test('stays within every limit of an embed, and in all below 6,000', () => {
    for (const piece of ['ب', '@a', '*', '\\', 'a.bc', '👩‍👩‍👧‍👦', '*\n'])
      for (const display of [persianDisplay, englishDisplay]) {
        const long = piece.repeat(5_000)
        const alert = alertOf({ headline: long, why: long, symbol: long, kind: long, ruleIds: [long] })
        const { title, description = '', fields, footer } = embedOf(alert, display)
        expect(title.length).toBeLessThanOrEqual(256)
        expect(description.length).toBeLessThanOrEqual(4_096)
        for (const { name, value } of fields) {
          expect(name.length).toBeLessThanOrEqual(256)
          expect(value.length).toBeLessThanOrEqual(1_024)
        }
        expect(footer.text.length).toBeLessThanOrEqual(2_048)
        const all = [title, description, footer.text, ...fields.flatMap(({ name, value }) => [name, value])]
        expect(all.join('').length).toBeLessThanOrEqual(6_000)
      }
  })
})

describe('the answer', () => {
  const json = (status: number, body: object) => ({ status, body: JSON.stringify(body) })

  test.each([
    [page, { kind: 'retry', reason: 'bad_answer' }],
    ...refusalPages,
    [json(200, { id: '1' }), { kind: 'delivered', answer: { status: 200, text: '' } }],
    [
      {
        ...json(429, { message: 'You are being rate limited.', retry_after: 0.65 }),
        headers: { 'retry-after': '1' },
      },
      { kind: 'retry', reason: 'rate_limited', afterMs: 650 },
    ],
    [
      { status: 429, headers: { 'retry-after': '60' }, body: 'error code: 1015' },
      { kind: 'retry', reason: 'rate_limited', afterMs: 60_000 },
    ],
    [
      json(404, { message: 'Unknown Webhook', code: 10_015 }),
      { kind: 'dead', reason: 'gone', sinkFault: true, answer: { text: 'Unknown Webhook' } },
    ],
    [json(401, { message: 'Invalid Webhook Token', code: 50_027 }), { kind: 'dead', reason: 'credentials' }],
    [
      json(400, { message: 'Invalid Form Body', code: 50_035 }),
      { kind: 'dead', reason: 'rejected', sinkFault: false },
    ],
    [json(500, {}), { kind: 'retry', reason: 'server_error' }],
  ])('%o is %o', async (answer, expected) => {
    expect((await serve({ config, answer })).outcome).toMatchObject(expected)
  })
})
