import { describe, expect, test } from 'vitest'
import type { Alert } from '../../../src/alert/alert.ts'
import type { Display } from '../../../src/alert/text/display.ts'
import {
  digestMax,
  digestMessage,
  mailMessage,
  splitDigest,
  subjectCharsMax,
} from '../../../src/sinks/email/message.ts'
import type { Parcel } from '../../../src/sinks/sink.ts'
import { alertOf, english, englishDisplay, hostile, persian, persianDisplay } from '../samples.ts'

const parties = { from: { name: 'Alerts', address: 'alerts@Example.com' }, to: 'desk@example.com' }
const mailOf = (alert = persian, to = parties.to, display = persianDisplay) =>
  mailMessage({ alert }, { ...parties, to }, display)

describe('the mail', () => {
  test.each([
    ['persian', persian, persianDisplay],
    ['persian-for-english-readers', persian, englishDisplay],
    ['english', english, englishDisplay],
    ['hostile', hostile, englishDisplay],
  ] as const)('of the %s sample is the one that was looked at', async (name, alert, display) => {
    const { html, text, ...head } = mailOf(alert, parties.to, display)
    await expect(html).toMatchFileSnapshot(`../golden/mail-${name}.html`)
    await expect(`${JSON.stringify(head, null, 2)}\n\n${text}`).toMatchFileSnapshot(
      `../golden/mail-${name}.txt`,
    )
  })

  test('of one alert to one recipient has one Message-ID', () => {
    expect(mailOf().messageId).toMatch(/^<main\.4711\.[0-9a-f]{12}@example\.com>$/)
    expect(mailOf().messageId).toBe(mailOf(alertOf({ headline: 'corrected since' })).messageId)
    const ids = [mailOf(), mailOf(persian, 'other@example.com'), mailOf(english)].map(
      (mail) => mail.messageId,
    )
    expect(new Set(ids).size).toBe(3)
  })

  test('that an operator asked for again has a Message-ID of its own, so that mailboxes show it, and names the first', () => {
    const again = (requestedAtMs: number) =>
      mailMessage({ alert: persian, requestedAtMs }, parties, persianDisplay)
    const [first, second, third] = [mailOf(), again(1_795_000_000_000), again(1_795_000_000_001)]
    expect(second.messageId).toMatch(/^<main\.4711\.[0-9a-f]{12}\.replay-1795000000000@example\.com>$/)
    expect(second).toMatchObject({ firstId: first.messageId, threadId: first.threadId })
    expect(second.headers).toMatchObject({ 'alert-bridge-replay': '2026-11-18T11:06:40.000Z' })
    expect(again(1_795_000_000_000).messageId).toBe(second.messageId)
    expect(third.messageId).not.toBe(second.messageId)
    expect(first.firstId).toBeUndefined()
  })

  test('joins the thread of its rule and day, as the reader counts days', () => {
    const at = (firedAt: string, ruleIds = ['12']) => mailOf(alertOf({ firedAt, ruleIds })).threadId
    expect(at('2026-11-20T21:00:00Z')).toBe(at('2026-11-21T20:00:00Z'))
    expect(at('2026-11-20T20:00:00Z')).not.toBe(at('2026-11-20T21:00:00Z'))
    expect(at('2026-11-21T08:00:00Z')).not.toBe(at('2026-11-21T08:00:00Z', ['13']))
    expect(at('not a date')).toContain('undated')
  })

  test('says that no person wrote it', () => {
    expect(mailOf().headers).toEqual({
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      'List-Id': '<main.alerts.example.com>',
    })
  })
})

describe('the subject', () => {
  test('is the headline in one line, without controls or marks that turn it around', () => {
    const { subject } = mailOf(hostile)
    expect(subject).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u)
    expect(subject).toContain('Bcc: victim@example.com')
    expect(subject.isWellFormed()).toBe(true)
  })

  test('is cut between characters', () => {
    const { subject } = mailOf(alertOf({ headline: '👩‍👩‍👧‍👦'.repeat(100) }))
    expect(subject.length).toBeLessThanOrEqual(subjectCharsMax)
    expect(subject.replaceAll('👩‍👩‍👧‍👦', '')).toBe('…')
  })

  test('of an alert without a headline names what it is about', () => {
    expect(mailOf(alertOf({ headline: ' \n' })).subject).toBe('فولاد · price')
    expect(mailOf(alertOf({ headline: '', symbol: null, kind: '' })).subject).toBe('main 4711')
  })
})

describe('the HTML', () => {
  test('gives every cell its direction, for programs that drop the attributes of <html>', () => {
    const cells = mailOf().html.match(/<td[^>]*>/g) ?? []
    const own = cells.filter((cell) => !cell.includes('align="center"') && !cell.includes('height:4px'))
    expect(own.length).toBeGreaterThan(8)
    for (const cell of own) expect(cell).toMatch(/dir="rtl" align="right"/)
    expect(mailOf().html).toContain('<html lang="fa" dir="rtl">')
    expect(mailOf().html).toContain('<bdi>price</bdi>')
  })

  test('follows the language of the headline where the reader has another', () => {
    const { html } = mailOf(persian, parties.to, englishDisplay)
    expect(html).toMatch(/<td dir="rtl" align="right"[^>]*><h1/)
    expect(html).toContain('>Symbol</td>')
  })

  test('holds upstream text as text only', () => {
    const { html } = mailOf(hostile, parties.to, englishDisplay)
    expect(html).not.toMatch(/<(script|img|svg|b>|!channel)/i)
    expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;')
    for (const href of html.match(/href="[^"]*"/g) ?? [])
      expect(href).toMatch(/^href="https:\/\/example\.com\//)
    const tags = (markup: string) => (markup.match(/<\/?[a-z][a-z0-9]*/gi) ?? []).toSorted().join()
    // Four lines more in its reason are the only markup that it has beyond the English sample.
    expect(tags(html).replaceAll(/<\/?div,?/g, '')).toBe(
      tags(mailOf(english, parties.to, englishDisplay).html).replaceAll(/<\/?div,?/g, ''),
    )
  })

  test('links to no address but plain http and https', () => {
    for (const url of ['javascript:alert(1)', 'data:text/html,x', 'https://a:b@example.com', ''])
      expect(mailOf(alertOf({ url })).html).not.toContain('href')
  })
})

describe('the text part', () => {
  test('has everything that the HTML has', () => {
    const { text } = mailOf(english, parties.to, englishDisplay)
    for (const part of [
      'Gold crossed above its 200-day average',
      'Symbol: \u2068XAU_USD\u2069',
      'Kind: \u2068screen\u2069',
      '30 Aban 1405 (21 November 2026), 09:00:05 Iran Time',
      'Close 4,120.50 > SMA(200) 4,118.20',
      'https://example.com/alerts/4711?ref=feed&tab=rules\n',
      '\u2068main\u2069 · \u20684712\u2069 · \u2068Rules 7\u2069',
    ])
      expect(text).toContain(part)
  })

  test('starts Persian lines with a right-to-left mark', () => {
    const lines = mailOf()
      .text.split('\n')
      .filter((line) => /\p{Script=Arabic}/u.test(line))
    expect(lines.length).toBeGreaterThan(5)
    for (const line of lines) expect(line.startsWith('\u200f')).toBe(true)
  })
})

describe('the digest', () => {
  const mailOf = ([parcel]: readonly Parcel[], display: Display) => {
    if (parcel === undefined) throw new TypeError('no alert')
    return mailMessage(parcel, parties, display)
  }
  const digestOf = (alerts: readonly Alert[], display: Display) =>
    digestMessage(
      alerts.map((alert) => ({ alert })),
      parties,
      display,
    )

  test.each([
    ['persian', persianDisplay],
    ['english', englishDisplay],
  ] as const)('in %s of all samples is the one that was looked at', async (name, display) => {
    const { html, text, ...head } = digestOf([persian, english, hostile], display)
    await expect(html).toMatchFileSnapshot(`../golden/digest-${name}.html`)
    await expect(`${JSON.stringify(head, null, 2)}\n\n${text}`).toMatchFileSnapshot(
      `../golden/digest-${name}.txt`,
    )
  })

  test('that an operator asked for again has a Message-ID of its own', () => {
    const idOf = (order: Pick<Parcel, 'requestedAtMs'>) =>
      digestMessage(
        [persian, english].map((alert) => ({ alert, ...order })),
        parties,
        persianDisplay,
      ).messageId
    const orders = [{}, { requestedAtMs: 1_795_000_000_000 }, { requestedAtMs: 1_795_000_000_001 }]
    expect(new Set(orders.map(idOf)).size).toBe(3)
  })

  test('reads each alert in its own direction, with both calendars', () => {
    const { text, html } = digestOf([persian, english], persianDisplay)
    expect(text).toMatch(/\n\u200fفولاد از مرز/)
    expect(text).toMatch(/\nGold crossed/)
    expect(text.match(/۳۰ آبان ۱۴۰۵ \(۲۱ نوامبر ۲۰۲۶\)/g)).toHaveLength(2)
    expect(html).toMatch(/dir="rtl" align="right"[^>]*>\s*<h2[^>]*><a [^>]*><bdi>فولاد/)
    expect(html).toMatch(/dir="ltr" align="left"[^>]*>\s*<h2[^>]*><a [^>]*><bdi>Gold/)
  })

  test.each(['ب', '"', '👩‍👩‍👧‍👦'])(
    'of long alerts of %s is split into mails that webmail shows whole, and that say everything',
    (piece) => {
      const alerts = Array.from({ length: digestMax }, (_, index) =>
        alertOf({
          id: 100 + index,
          headline: `${index} ${piece.repeat(20)}`,
          why: `${piece.repeat(1_900 / piece.length)}\nthe end of ${index}`,
          url: `https://example.com/${index}/${'a'.repeat(1_500)}`,
          firedAt: new Date(Date.UTC(2026, 10, 21, 5, 30, (index * 7) % 40)).toISOString(),
        }),
      )
      const parts = splitDigest(
        alerts.map((alert) => ({ alert })),
        persianDisplay,
      )
      expect(splitDigest(parts.flat().toReversed(), persianDisplay)).toEqual(parts)
      const mails = parts.map((part) =>
        part.length === 1 ? mailOf(part, persianDisplay) : digestMessage(part, parties, persianDisplay),
      )
      expect(mails.length).toBeGreaterThan(1)
      for (const { html, subject } of mails) {
        expect(Buffer.byteLength(html)).toBeLessThan(102_000)
        expect(subject.length).toBeLessThanOrEqual(subjectCharsMax)
      }
      // Only the last is not full.
      for (const { html } of mails.slice(0, -1)) expect(Buffer.byteLength(html)).toBeGreaterThan(70_000)
      for (const part of ['html', 'text'] as const) {
        const said = mails.map((mail) => mail[part]).join('\n')
        for (const { id, url } of alerts) {
          expect(said).toMatch(new RegExp(`the end of ${id - 100}\\b`))
          expect(said).toContain(url)
        }
      }
      expect(new Set(mails.map(({ messageId }) => messageId)).size).toBe(mails.length)
    },
  )

  test('no alert is too long for a mail of its own', () => {
    for (const piece of ['"', '.ا', '👩‍👩‍👧‍👦', "'\n"]) {
      const long = piece.repeat(9_000)
      const url = `https://example.com/?${'&'.repeat(1_900)}`
      const alert = alertOf({ headline: long, why: long, symbol: long, kind: long, url, ruleIds: [long] })
      for (const { html } of [digestOf([alert], persianDisplay), mailOf([{ alert }], persianDisplay)])
        expect(Buffer.byteLength(html)).toBeLessThan(102_000)
    }
  })

  test('makes no markup and no link of hostile text', () => {
    const { html, text } = digestOf([hostile, hostile], englishDisplay)
    expect(html).not.toMatch(/<(script|svg|img)/)
    expect(html.match(/href="([^"]*)"/g)?.every((href) => href.includes('https://example.com/'))).toBe(true)
    expect(`${html}${text}`).not.toContain('evil.example')
  })
})
