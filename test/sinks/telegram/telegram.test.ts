import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Alert } from '../../../src/alert/alert.ts'
import { telegramText } from '../../../src/sinks/telegram/message.ts'
import { alertOf, english, englishDisplay, hostile, persian, persianDisplay } from '../samples.ts'
import { refusalPages, serve } from '../serving.ts'

const token = '123456:abcdefghijklmnopqrstuvwxyz'
const config =
  (more: Record<string, unknown> = {}) =>
  (baseUrl: string) => ({
    type: 'telegram',
    baseUrl,
    token,
    chatId: '@prices',
    ...more,
  })
const textOf = (alert: Alert, display = englishDisplay) => telegramText({ alert }, display)

describe('the message', () => {
  test.each([
    ['persian', persian, persianDisplay],
    ['english', english, englishDisplay],
    ['hostile', hostile, englishDisplay],
  ] as const)('of the %s sample is the one that was looked at', async (name, alert, display) => {
    await expect(`${textOf(alert, display)}\n`).toMatchFileSnapshot(`../golden/telegram-${name}.html`)
  })

  test('is posted to the bot, formatted, without a preview', async () => {
    const { request, body } = await serve({ config: config({ threadId: 7, silent: true }) })
    expect(request).toMatchObject({ method: 'POST', path: `/bot${token}/sendMessage` })
    expect(body).toEqual({
      chat_id: '@prices',
      message_thread_id: 7,
      text: textOf(persian),
      parse_mode: 'HTML',
      link_preview_options: { is_disabled: true },
      disable_notification: true,
    })
  })

  test('is found under the path of a server of your own', async () => {
    const { request } = await serve({ config: (origin) => config()(`${origin}/telegram/`) })
    expect(request.path).toBe(`/telegram/bot${token}/sendMessage`)
  })
})

describe('upstream text', () => {
  const nasty = fc.stringMatching(/^[<>&"'@#$/:._*a-z \n\u202e\u0627-\u064a😀]{0,60}$/u)

  test('opens no tag, closes none, and is nothing to press', () => {
    fc.assert(
      fc.property(nasty, nasty, nasty, (headline, why, symbol) => {
        const made = textOf(alertOf({ headline, why, symbol, url: 'https://example.com/a?b&c' }))
        const bare = made.replace(
          /<a href="https:\/\/example\.com\/a\?b&amp;c">|<\/?[abi]>|<\/?blockquote>/g,
          '',
        )
        expect(bare).not.toMatch(/[<>"]/)
        expect(bare.replace(/&(amp|lt|gt|quot);/g, '')).not.toContain('&')
        expect(bare).not.toMatch(/:\/\/|[@#][\p{L}\p{N}_]|(^|[^\p{L}\p{N}])[$/][a-z]/iu)
      }),
    )
  })

  test('stays within the limit, whatever its length and however it is counted', () => {
    for (const piece of ['ب', '@a', '<', '&', '#a.bc ', '👩‍👩‍👧‍👦', 'a\n'])
      for (const display of [persianDisplay, englishDisplay]) {
        const long = piece.repeat(5_000)
        const made = textOf(
          alertOf({ headline: long, why: long, symbol: long, kind: long, ruleIds: [long] }),
          display,
        )
        // Telegram counts what is left when tags are taken out and entities are read.
        const counted = made.replace(/<[^>]+>/g, '').replace(/&(amp|lt|gt|quot);/g, '.')
        expect(counted.length).toBeLessThanOrEqual(4_096)
        expect(made.isWellFormed()).toBe(true)
      }
  })
})

describe('the answer', () => {
  const refusal = (status: number, description: string, more: object = {}) => ({
    status,
    body: JSON.stringify({ ok: false, error_code: status, description, ...more }),
  })

  test.each([
    [{ status: 200, body: '{"ok":true,"result":{"message_id":1}}' }, { kind: 'delivered' }],
    [
      { status: 200, body: '<html>Sign in</html>' },
      { kind: 'retry', reason: 'bad_answer' },
    ],
    [
      { status: 200, body: '{"ok":false}' },
      { kind: 'retry', reason: 'bad_answer' },
    ],
    [
      refusal(429, 'Too Many Requests: retry after 35', { parameters: { retry_after: 35 } }),
      { kind: 'retry', reason: 'rate_limited', afterMs: 35_000, sinkFault: false },
    ],
    [refusal(400, 'Bad Request: chat not found'), { kind: 'dead', reason: 'gone', sinkFault: true }],
    [
      refusal(400, 'Bad Request: group chat was upgraded to a supergroup chat', {
        parameters: { migrate_to_chat_id: -100 },
      }),
      { kind: 'dead', reason: 'gone' },
    ],
    [
      refusal(400, "Bad Request: can't parse entities"),
      { kind: 'dead', reason: 'rejected', sinkFault: false },
    ],
    [refusal(403, 'Forbidden: bot was kicked from the group chat'), { kind: 'dead', reason: 'gone' }],
    [refusal(401, 'Unauthorized'), { kind: 'dead', reason: 'credentials', sinkFault: true }],
    [refusal(404, 'Not Found'), { kind: 'dead', reason: 'credentials' }],
    [refusal(502, 'Bad Gateway'), { kind: 'retry', reason: 'server_error' }],
    ...refusalPages,
  ])('%o is %o', async (answer, expected) => {
    expect((await serve({ config: config(), answer })).outcome).toMatchObject(expected)
  })

  test('is told in the words of the service', async () => {
    const answer = refusal(400, 'Bad Request: chat not found')
    const { outcome } = await serve({ config: config(), answer })
    expect(outcome.answer).toEqual({ status: 400, text: 'Bad Request: chat not found' })
  })
})
