import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AlertContext } from '../../src/alert/context.ts'
import { parseJson } from '../../src/alert/json/json-number.ts'
import type { Display } from '../../src/alert/text/display.ts'
import { webhookBody } from '../../src/sinks/body.ts'
import { chartFigure } from '../../src/sinks/chart/figure.ts'
import { contentOf } from '../../src/sinks/content.ts'
import { contextFacts } from '../../src/sinks/context-facts.ts'
import { discordMessage } from '../../src/sinks/discord/message.ts'
import { digestMessage, mailMessage } from '../../src/sinks/email/message.ts'
import { ntfyMessage } from '../../src/sinks/ntfy/message.ts'
import { pagerDutyEvent } from '../../src/sinks/pagerduty/event.ts'
import type { Parcel } from '../../src/sinks/sink.ts'
import { plainMessage, slackList, slackMessage } from '../../src/sinks/slack/blocks.ts'
import { teamsMessage } from '../../src/sinks/teams/card.ts'
import { telegramText } from '../../src/sinks/telegram/message.ts'
import { contextAt, contextOf, evil, whole } from './contexts.ts'
import { alertOf, english, englishDisplay, hostile, persian, persianDisplay } from './samples.ts'

/** What people see of an alert's context, in every kind of message. */
function texts(parcel: Parcel, display: Display) {
  const mail = mailMessage(
    parcel,
    { from: { name: '', address: 'a@example.com' }, to: 'b@example.com' },
    display,
  )
  return {
    slack: JSON.stringify(slackMessage(parcel, display).blocks?.slice(1, 3), null, 1),
    slackText: plainMessage(parcel, display).text,
    slackList: JSON.stringify(slackList([parcel, parcel], display).blocks?.slice(-1), null, 1),
    telegram: telegramText(parcel, display),
    ntfy: JSON.stringify(
      ntfyMessage(parcel, display, { topic: 't', priority: 'default', tags: [] }),
      null,
      1,
    ),
    discord: JSON.stringify(discordMessage(parcel, display).embeds[0].fields, null, 1),
    teams: JSON.stringify(teamsMessage(parcel, display)),
    pagerduty: JSON.stringify(
      pagerDutyEvent(parcel, display, { routingKey: 'k', severity: 'info', client: 'c' }),
      null,
      1,
    ),
    mail: mail.text,
    html: mail.html,
  }
}

describe('context', () => {
  test.each([
    ['persian', persian, persianDisplay, whole],
    ['english', english, englishDisplay, whole],
    ['hostile', hostile, englishDisplay, evil],
  ] as const)(
    'of the %s sample reads as it was looked at, in every kind of message',
    async (name, alert, display, context) => {
      const { teams: _, html: _html, ...shown } = texts({ alert, context }, display)
      const golden = Object.entries(shown).map(([sink, text]) => `== ${sink}\n${text}\n`)
      await expect(golden.join('\n')).toMatchFileSnapshot(`golden/context-${name}.txt`)
    },
  )

  test.each([
    ['persian', persian, persianDisplay, whole],
    ['hostile', hostile, englishDisplay, evil],
  ] as const)(
    'of the %s sample is in a mail with its chart as it was looked at',
    async (name, alert, display, context) => {
      const parties = { from: { name: '', address: 'a@example.com' }, to: 'b@example.com' }
      const alt = chartFigure({ alert, context }, display)?.alt ?? ''
      const { html } = mailMessage({ alert, context }, parties, display, {
        ...{ png: new Uint8Array(), alt },
        width: 480,
        height: 220,
      })
      await expect(html).toMatchFileSnapshot(`golden/mail-chart-${name}.html`)
      expect(html).not.toMatch(/<(script|svg)|<img(?! class="ab-faint" src="cid:)/)
      expect(Buffer.byteLength(html)).toBeLessThan(102_000)
    },
  )

  test('has its units in words of the language, as far as they are known', () => {
    const context = contextOf({
      'macro:cpi': [{ unit: 'index', points: [{ value: 320.5 }] }],
      'macro:oil': [{ unit: 'barrel', points: [{ value: 2 }] }],
    })
    const shown = (display: Display) =>
      contextFacts(context, display)
        .map(({ value }) => value)
        .join()
    expect(shown(persianDisplay)).toMatch(/۳۲۰٫۵ شاخص.*۲ barrel/)
    expect(shown(englishDisplay)).toMatch(/320.5 index.*2 barrel/)
  })

  test('is in a card of Teams as a field each, with the columns of its chart', () => {
    const { teams } = texts({ alert: persian, context: whole }, persianDisplay)
    const facts = contextFacts(whole, persianDisplay, { firedAtMs: persian.firedAtMs })
    expect(facts.length).toBeGreaterThan(5)
    for (const { word } of facts) expect(teams).toContain(`${word}: `)
    for (const text of ['۵٬۲۳۰ ریال', '▁▂▃▄▄▆▇█', 'RSI ۷۴٫۲', 'صورت‌های مالی', '۴۱٫۵'])
      expect(teams).toContain(text)
  })

  test('is as harmless as a headline, and makes no message longer than it may be', () => {
    for (const display of [persianDisplay, englishDisplay]) {
      const shown = texts({ alert: hostile, context: evil }, display)
      for (const [sink, text] of Object.entries(shown)) {
        expect([sink, text.includes('\u202e'), text.includes('\u001b'), text.isWellFormed()]).toEqual([
          sink,
          false,
          false,
          true,
        ])
        if (sink.startsWith('slack') || sink === 'telegram' || sink === 'html')
          expect(text).not.toMatch(/<(img|script)/)
      }
      expect(shown.slackText).not.toMatch(/<(?!https:\/\/example\.com)/)
      const { message } = ntfyMessage({ alert: hostile, context: evil }, display, {
        ...{ topic: 't', priority: 'default', tags: [] },
      }) as { message: string }
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4_096)
      expect(shown.telegram.replace(/<[^>]*>/g, '').length).toBeLessThanOrEqual(4_096)
      expect(Buffer.byteLength(shown.teams)).toBeLessThanOrEqual(28_000)
      const blocks = slackMessage({ alert: hostile, context: evil }, display).blocks ?? []
      for (const block of blocks) if ('fields' in block) expect(block.fields.length).toBeLessThanOrEqual(10)
    }
  })

  test('takes its room from the reasons, at most six tenths of it: no message is longer with it', () => {
    const long = (charsMax: number) => 'گ"ژ,'.repeat(charsMax / 4)
    const points = Array.from({ length: 60 }, (_, at) => ({ close: 5_000.125 + at }))
    const holders = ['a', 'b', 'c'].map((name, at) => ({ name: long(40) + name, percent: 33.25 - at }))
    const context = contextOf({
      price: { last: 5_059.125, change: 1.36, unit: long(24) },
      chart: { unit: long(24), points },
      indicators: { rsi: 99.25, mfi: 99, stoch_k: 1.25, willr: -2.75, cci: 999 },
      filing: { title: long(400), periodMonths: 12 },
      ownership: { summary: { holders } },
      ...Object.fromEntries([1, 2, 3, 4].map((at) => [`macro:${at}${long(20)}`, [{ value: 93_600.5 }]])),
    })
    const alert = alertOf({
      ...{ headline: long(3_000), symbol: long(900), kind: long(900), ruleIds: [long(4_000)] },
      why: Array.from({ length: 60 }, () => long(800)).join('\n'),
    })
    const limits = { titleCharsMax: 300, factCharsMax: 150, whyCharsMax: 800, whyLinesMax: 15 }
    const { facts, why } = contentOf({ alert, context }, persianDisplay, limits)
    const known = facts.filter(({ isKnown }) => isKnown)
    expect(known.length).toBeGreaterThan(2)
    const knownChars = known.reduce((sum, { word, value }) => sum + word.length + value.length, 0)
    const whyChars = why.reduce((sum, { text }) => sum + text.length, 0)
    expect(knownChars).toBeLessThanOrEqual(480)
    expect(whyChars).toBeGreaterThan(320)
    expect(knownChars + whyChars).toBeLessThanOrEqual(800)
    // Without context it fills nearly all that Telegram allows.
    const telegram = (parcel: Parcel) => telegramText(parcel, persianDisplay).replace(/<[^>]*>/g, '').length
    expect(telegram({ alert })).toBeGreaterThan(3_900)
    expect(telegram({ alert, context })).toBeLessThanOrEqual(4_096)
  })

  test('of any shape shows what is found in it, or nothing', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('price', 'chart', 'indicators', 'filing', 'ownership', 'valuation', 'macro:x'),
          fc.jsonValue(),
        ),
        (parts) => {
          for (const { word, value } of contextFacts(contextOf(parts), persianDisplay)) {
            expect(word).not.toBe('')
            expect(value).not.toMatch(/NaN|undefined|null|Infinity/)
          }
        },
      ),
    )
  })
})

const dotBesideDigit = /[۰-۹][\s\u200e\u200f\u2066-\u2069]{0,4}·|·[\s\u200e\u200f\u2066-\u2069]{0,4}[۰-۹]/g

describe('in Persian', () => {
  test('no message has a dot beside a digit, where it would read as one more zero', () => {
    const parcel = { alert: persian, context: whole, heldBack: 12 }
    const parties = { from: { name: '', address: 'a@example.com' }, to: 'b@example.com' }
    const digest = digestMessage([parcel, parcel], parties, persianDisplay)
    const shown = {
      ...texts(parcel, persianDisplay),
      ...{ footer: discordMessage(parcel, persianDisplay).embeds[0].footer.text },
      ...{ digest: digest.text, digestHtml: digest.html },
    }
    const beside = Object.entries(shown).flatMap(([sink, text]) =>
      [...text.replace(/<[^>]*>/g, '').matchAll(dotBesideDigit)].map(([found]) => [sink, found]),
    )
    expect(beside).toEqual([])
  })
})

describe('a figure', () => {
  const facts = (parts: Readonly<Record<string, unknown>>, names: AlertContext['names'] = {}) =>
    contextFacts(contextOf(parts, names), englishDisplay).map(
      ({ word, value }) => `${word}: ${value.replace(' · 09:00:06', '')}`,
    )

  test('has its unit, or none', () => {
    expect(facts({ price: { last: 5_230, unit: 'toman' } })).toEqual(['Last price: 5,230 toman'])
    expect(facts({ price: { last: 5_230, unit: null } })).toEqual(['Last price: 5,230'])
    expect(facts({ price: { last: '5230', unit: 'rial' } })).toEqual([])
  })

  test('is turned around by no unit of the other language: what stands behind it is shown behind it', () => {
    const price = (unit: string) => contextOf({ price: { last: 5_230, changePercent: 1.36, unit } })
    const shown = (unit: string, display: Display) =>
      contextFacts(price(unit), display, { firedAtMs: persian.firedAtMs }).map(({ value }) => value)
    expect(shown('ریال', englishDisplay)).toEqual(['\u200e5,230 ریال\u200e (+1.36%) · 09:00:06'])
    expect(shown('IRR', persianDisplay)).toEqual(['\u200f۵٬۲۳۰ IRR\u200f (\u200e+۱٫۳۶٪)، ۰۹:۰۰:۰۶'])
    expect(shown('rial', englishDisplay)).toEqual(['5,230 rial (+1.36%) · 09:00:06'])
    expect(shown('rial', persianDisplay)).toEqual(['۵٬۲۳۰ ریال (\u200e+۱٫۳۶٪)، ۰۹:۰۰:۰۶'])
    // The sign of the rial is no letter, and is read from right to left like one.
    expect(shown('﷼', englishDisplay)).toEqual(['\u200e5,230 ﷼\u200e (+1.36%) · 09:00:06'])
    expect(shown('﷼', persianDisplay)).toEqual(['۵٬۲۳۰ ﷼ (\u200e+۱٫۳۶٪)، ۰۹:۰۰:۰۶'])
  })

  test('stays with its name, also where that is in both scripts', () => {
    const shown = (names: readonly string[], display: Display) => {
      const holders = names.map((name, at) => ({ name, percent: 40 - at }))
      const series = { 'macro:نفت': { points: [{ value: 70 }] }, 'macro:usd': { points: [{ value: 93 }] } }
      return contextFacts(contextOf({ ownership: { summary: { holders } }, ...series }), display).map(
        ({ value }) => value,
      )
    }
    // Without the marks, the percentages of two Persian names in a row change places in an English line.
    expect(shown(['Gol Gohar / گل‌گهر', 'بانک', 'A'], englishDisplay)).toEqual([
      'Gol Gohar / گل‌گهر\u200e 40%, بانک\u200e 39%, A 38%',
      '\u200eنفت\u200e 70 · usd 93',
    ])
    expect(shown(['صندوق قابل معامله ETF', 'A', 'بانک'], persianDisplay)).toEqual([
      'صندوق قابل معامله ETF\u200f ۴۰٪، A\u200f ۳۹٪، بانک ۳۸٪',
      'نفت ۷۰\u200f، \u200fusd\u200f ۹۳',
    ])
  })

  test('without a unit is read in the direction of the language, though no letter of it has one', () => {
    const shown = (change: object, display: Display) =>
      contextFacts(contextOf({ price: { last: 5_230, ...change } }), display, {
        firedAtMs: persian.firedAtMs,
      }).map(({ value }) => value)
    expect(shown({ changePercent: 1.36 }, persianDisplay)).toEqual(['\u200f۵٬۲۳۰ (\u200e+۱٫۳۶٪)، ۰۹:۰۰:۰۶'])
    expect(shown({}, persianDisplay)).toEqual(['\u200f۵٬۲۳۰، ۰۹:۰۰:۰۶'])
    expect(shown({ change: 70 }, persianDisplay)).toEqual(['۵٬۲۳۰ (تغییر \u200e+۷۰)، ۰۹:۰۰:۰۶'])
    expect(shown({ changePercent: 1.36 }, englishDisplay)).toEqual(['5,230 (+1.36%) · 09:00:06'])
  })

  test('is read from a number that was spelled in another way, and is none where JavaScript has none', () => {
    const price = (last: string) => parseJson(`{"last":${last}}`)
    expect(facts({ price: price('5230.50') })).toEqual(['Last price: 5,230.5'])
    expect(facts({ price: price('9007199254740993') })).toEqual(['Last price: 9,007,199,254,740,990'])
    expect(facts({ price: price('1e400') })).toEqual([])
  })

  test('is a percentage only where that is known', () => {
    const price = { last: 5_230, change: 1.36 }
    expect(facts({ price })).toEqual(['Last price: 5,230 (change +1.36)'])
    expect(facts({ price }, { changePercent: ['change'] })).toEqual(['Last price: 5,230 (+1.36%)'])
    const chart = (latest: number) => ({ unit: null, points: [5_160, latest].map((close) => ({ close })) })
    expect(facts({ price, chart: chart(5_230) })).toEqual(['Last price: 5,230 (+1.36%)'])
    expect(facts({ price, chart: chart(5_229) })).toEqual(['Last price: 5,230 (change +1.36)'])
  })

  test('keeps its name where the config gives that name to a reading of another object', () => {
    const price = { last: 5_230, close: 5_210, unit: null }
    const points = [5_100, 5_000, 5_200, 5_300, 5_210].map((close) => ({ close }))
    const columns = expect.stringMatching(/^5 sessions: /)
    expect(facts({ price, chart: { points } }, { last: ['close'] })).toEqual(['Last price: 5,210', columns])
    expect(facts({ chart: { points } }, { value: ['close'], title: ['points'] })).toEqual([columns])
  })

  test('is no change of the session before: where the history ends before today, equal prices show nothing', () => {
    const points = (day: number) => [
      { date: `2026-11-${day - 1}`, close: 5_000 },
      { date: `2026-11-${day}`, close: 5_250 },
    ]
    const shown = (price: object, day: number) =>
      facts({ price: { last: 5_250, ...price }, chart: { unit: null, points: points(day) } })
    // Contexts of these tests were read on the 21st.
    expect(shown({ change: 0 }, 20)).toEqual(['Last price: 5,250 (change 0)'])
    expect(shown({}, 20)).toEqual(['Last price: 5,250'])
    expect(shown({}, 21)).toEqual(['Last price: 5,250 (+5%)'])
    for (const change of [250, 5]) expect(shown({ change }, 20)).toEqual(['Last price: 5,250 (+5%)'])
    expect(shown({ change: 0.05 }, 20)).toEqual(['Last price: 5,250 (change +0.05)'])
  })

  test('is of today by the day in Tehran, where the exchange is, also for readers elsewhere', () => {
    const display = { ...englishDisplay, timeZone: 'America/Los_Angeles' }
    const shown = (parts: Readonly<Record<string, unknown>>) =>
      contextFacts(contextOf(parts), display).map(({ value }) => value.replace(/ · 21:30:06$/, ''))
    const points = (day: number) => [
      { date: `2026-11-${day - 1}`, close: 5_000, value: 93_100 },
      { date: `2026-11-${day}`, close: 5_250, value: 93_600 },
    ]
    const priceWith = (day: number) => ({ price: { last: 5_250 }, chart: { points: points(day) } })
    // Read on the 21st in Tehran, which is the evening of the 20th there.
    expect(shown(priceWith(20))).toEqual(['5,250'])
    expect(shown(priceWith(21))).toEqual(['5,250 (+5%)'])
    const macro = (day: number) => shown({ 'macro:usd_free': [{ key: 'usd_free', points: points(day) }] })
    expect([macro(20), macro(21)]).toEqual([['usd_free 93,600 (29 Aban)'], ['usd_free 93,600']])
  })

  test('of a price is above zero: a session without trades may be written as one', () => {
    const points = [5_000, 5_100, 0, 5_200, 5_300, 5_250].map((close, index) => ({
      ...{ date: `2026-11-${16 + index}`, close },
    }))
    expect(facts({ chart: { unit: 'rial', points } })[0]).toMatch(/^5 sessions: .* 5,000–5,300 rial$/)
    expect(facts({ price: { last: 0, unit: 'rial' } })).toEqual([])
    const context = contextOf({ chart: { unit: 'rial', points } })
    const figure = chartFigure({ alert: english, context }, englishDisplay)
    expect(figure?.sessions.map(({ close }) => close)).toEqual([5_000, 5_100, undefined, 5_200, 5_300, 5_250])
    expect(figure?.low).toBeGreaterThan(4_900)
  })

  test('is not compared with one of another unit, and no letter reports a span of nothing', () => {
    const points = [5_000, 5_250].map((close, index) => ({ date: `2026-11-${20 + index}`, close }))
    const shown = (unit: string | null) =>
      facts({ price: { last: 5_250, unit }, chart: { unit: 'rial', points } })
    expect(shown('toman')).toEqual(['Last price: 5,250 toman'])
    expect(shown('rial')).toEqual(['Last price: 5,250 rial (+5%)'])
    expect(shown(null)).toEqual(['Last price: 5,250 (+5%)'])
    expect(facts({ filing: { title: 'Report', periodMonths: 0 } })).toEqual(['Latest letter: Report'])
  })

  test('of an indicator is on its usual scale: another one would make usual readings look unusual', () => {
    const shown = (indicators: object) => facts({ indicators: { seriesHash: 'a', indicators } })
    expect(shown({ rsi: 74.2, willr: -82.79 })).toEqual(['Unusual readings: RSI 74.2 · Williams R -82.79'])
    expect(shown({ rsi: 7420, mfi: -3, willr: 45 })).toEqual([])
  })

  test('is whole or not there: none is cut off, rounded to nothing, or beyond all that a market has', () => {
    for (const last of [1e308, 7e-300, 1e21]) expect(facts({ price: { last } })).toEqual([])
    expect(facts({ filing: { title: 'Report', periodMonths: 1e300 } })).toEqual(['Latest letter: Report'])
    expect(facts({ price: { last: 0.0065, change: 0.0012 } })).toEqual([
      'Last price: 0.0065 (change +0.0012)',
    ])
    expect(facts({ indicators: { cci: 150, rsi: parseJson('-0') } })).toEqual([
      'Unusual readings: RSI 0 · CCI 150',
    ])
    const noise = { rsi: 74.2345678901234, mfi: 85.1234567890123, stoch_k: 92.1234567890123 }
    expect(facts({ indicators: { ...noise, willr: -5.12345678901234, cci: 154.123456789012 } })).toEqual([
      'Unusual readings: RSI 74.23 · MFI 85.12 · Stochastic 92.12 · Williams R -5.12 · CCI 154.12',
    ])
    const holders = ['a', 'b', 'c'].map((name) => ({ name: name.repeat(40), percent: 1e19 }))
    expect(facts({ ownership: { summary: { holders } } })).toEqual([])
  })

  test('of many is left out as a whole where there is no room for it', () => {
    const keys = ['usd_free', 'eur_free', 'gold_18k', 'coin_emami', 'money_supply', 'inflation']
    const series = keys.map((key) => [`macro:${key}`, [{ date: '2026-11-21', value: 123_456.789 }]])
    expect(facts(Object.fromEntries(series))).toEqual([
      `Macro: ${[...keys.slice(0, 4).map((key) => `${key} 123,456.789`), '…'].join(' · ')}`,
    ])
  })

  test('of a history is one of twenty columns, and of the holders the three largest are shown', () => {
    const points = Array.from({ length: 60 }, (_, at) => ({ close: 5_000 + at }))
    expect(facts({ chart: { points } })).toEqual([
      expect.stringMatching(/^60 sessions: \u200e[▁-█]{20}\u200e 5,000–5,059$/),
    ])
    const holders = [5, 41.5, 20, 30.25].map((percent) => ({ name: `of ${percent}`, percent }))
    expect(facts({ ownership: { summary: { holders } } })).toEqual([
      'Holders: of 41.5 41.5%, of 30.25 30.25%, of 20 20%',
    ])
  })

  test('of another day shows its day', () => {
    const point = (date: string) => ({ points: [{ date, value: 93_600 }], unit: 'toman' })
    const macro = (date: string) => facts({ 'macro:usd_free': point(date) })
    expect(macro('2026-11-21')).toEqual(['Macro: usd_free 93,600 toman'])
    expect(macro('2026-10-25')).toEqual(['Macro: usd_free 93,600 toman (3 Aban)'])
    const price = contextOf({ price: { last: 5_230 } })
    const read = (firedAt: string) =>
      contextFacts(price, englishDisplay, { firedAtMs: Date.parse(firedAt) })[0]?.value
    expect(read('2026-11-21T05:30:00Z')).toBe('5,230 · 09:00:06')
    expect(read('2026-11-19T05:30:00Z')).toBe('5,230 · 30 Aban 09:00:06')
  })

  test('is of the series and of the record that was meant, where an answer has several', () => {
    const points = (value: number) => [{ date: '2026-11-21', value }]
    const several = [
      { key: 'gold', points: points(1) },
      { key: 'usd_free', points: points(2) },
    ]
    const unnamed = [{ points: points(1) }, { points: points(2) }]
    expect(facts({ 'macro:usd_free': several })).toEqual(['Macro: usd_free 2'])
    expect(facts({ 'macro:euro': several })).toEqual([])
    expect(facts({ 'macro:euro': several[0] })).toEqual([])
    expect(facts({ 'macro:euro': unnamed })).toEqual([])
    expect(facts({ 'macro:euro': unnamed.slice(1) })).toEqual(['Macro: euro 2'])
    expect(facts({ 'macro:euro': points(3) })).toEqual(['Macro: euro 3'])

    const record = (name: string, asOf?: string) => ({
      summary: { asOf, holders: [{ name, percent: 41.5 }] },
    })
    const [old, now] = [record('old', '2025-11-01'), record('now', '2026-11-01')]
    expect(facts({ ownership: [old, now] })).toEqual(['Holders: now 41.5%'])
    expect(facts({ ownership: [now, old] })).toEqual(['Holders: now 41.5%'])
    expect(facts({ ownership: [now, record('unknown')] })).toEqual([])
    expect(facts({ ownership: [record('only')] })).toEqual(['Holders: only 41.5%'])
  })

  test('is found by a name of the config before the names that are known', () => {
    expect(facts({ price: { last: 1, lastTrade: 2 } }, { last: ['lastTrade'] })).toEqual(['Last price: 2'])
    expect(facts({ price: { nowhere: 1 } }, { last: ['toString'] })).toEqual([])
  })
})

test('a webhook gets the fields of the answer, what was skipped and why; without context the body is what it was', () => {
  const { context } = (
    JSON.parse(webhookBody({ alert: persian, context: whole })) as { data: Record<string, never> }
  ).data
  expect(context).toMatchObject({
    price: { data: { last: 5_230 }, at: contextAt },
    skipped: [{ what: 'indicators', why: 'budget' }],
  })
  expect(webhookBody({ alert: persian })).toBe(
    JSON.stringify({
      type: 'alert.fired',
      timestamp: persian.firedAt,
      data: { source: 'main', delivery: persian.row },
    }),
  )
})
