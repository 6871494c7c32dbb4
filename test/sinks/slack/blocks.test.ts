import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Alert } from '../../../src/alert/alert.ts'
import type { Display } from '../../../src/alert/text/display.ts'
import type { SlackMessage } from '../../../src/sinks/slack/blocks.ts'
import * as blocks from '../../../src/sinks/slack/blocks.ts'
import { alertOf, english, englishDisplay, hostile, persian, persianDisplay } from '../samples.ts'

const slackMessage = (alert: Alert, display: Display) => blocks.slackMessage({ alert }, display)
const plainMessage = (alert: Alert, display: Display) => blocks.plainMessage({ alert }, display)

/** Every piece of markup of a message, with the limit that Slack sets for its place. */
function pieces(message: SlackMessage): { text: string; charsMax: number }[] {
  const inBlocks = (message.blocks ?? []).flatMap((block) => {
    if ('fields' in block) return block.fields.map(({ text }) => ({ text, charsMax: 2_000 }))
    if ('elements' in block) return block.elements.map(({ text }) => ({ text, charsMax: 2_000 }))
    return [{ text: block.text.text, charsMax: 3_000 }]
  })
  return [{ text: message.text, charsMax: 10_000 }, ...inBlocks]
}

/** What is left once the only markup that we make ourselves is taken away: one link and bold words. */
function withoutOwnMarkup(text: string, url: string | undefined): string {
  const address = url?.replaceAll('&', '&amp;')
  const bare = address === undefined ? text : text.replaceAll(`<${address}|`, '').replaceAll('>', '')
  return bare.replace(/^\*([^*]*)\*$/gm, '$1')
}

const golden = (name: string) => `../golden/slack-${name}.json`

describe('the message', () => {
  test.each([
    ['persian', persian, persianDisplay],
    ['persian-for-english-readers', persian, englishDisplay],
    ['english', english, englishDisplay],
    ['hostile', hostile, englishDisplay],
  ] as const)('of the %s sample is the one that was looked at', async (name, alert, display) => {
    await expect(`${JSON.stringify(slackMessage(alert, display), null, 2)}\n`).toMatchFileSnapshot(
      golden(name),
    )
  })

  test('links its headline to the url and carries kind, symbol, time and why', () => {
    const text = JSON.stringify(slackMessage(english, englishDisplay).blocks)
    expect(text).toContain('<https://example.com/alerts/4711?ref=feed&amp;tab=rules|')
    for (const part of [
      'screen',
      'XAU_USD',
      '30 Aban 1405 (21 November 2026), 09:00:05 Iran Time',
      'SMA(200)',
    ])
      expect(text).toContain(part)
  })

  test('unfurls nothing and makes no names into links', () => {
    expect(slackMessage(persian, persianDisplay)).toMatchObject({
      unfurl_links: false,
      unfurl_media: false,
      link_names: false,
    })
  })

  test('leaves out what is not there', () => {
    const bare = slackMessage(alertOf({ why: null, symbol: null, url: '', ruleIds: [] }), englishDisplay)
    expect(JSON.stringify(bare)).not.toMatch(/Symbol|Why|Rules|http/)
    const barest = slackMessage(alertOf({ why: '\n', symbol: '', kind: ' ', firedAt: '' }), englishDisplay)
    expect(barest.blocks?.map((block) => block.type)).toEqual(['section', 'context'])
  })
})

describe('upstream text', () => {
  const nasty = fc.stringMatching(/^[<>&!@#|*_~`:a-z \n\u202e\u2067\u0627-\u064a😀]{0,60}$/u)

  test('never mentions, links or formats', () => {
    fc.assert(
      fc.property(nasty, nasty, nasty, nasty, (headline, why, symbol, kind) => {
        for (const display of [persianDisplay, englishDisplay]) {
          const alert = alertOf({ headline, why, symbol, kind, url: 'https://example.com/a?b&c' })
          for (const message of [slackMessage(alert, display), plainMessage(alert, display)])
            for (const { text } of pieces(message)) {
              const bare = withoutOwnMarkup(text, 'https://example.com/a?b&c')
              expect(bare).not.toMatch(/[<>]/)
              expect(bare.replace(/&(amp|lt|gt);/g, '')).not.toContain('&')
              expect(bare).not.toMatch(/[*~`]|(^|[^\p{L}\p{N}])_|_([^\p{L}\p{N}]|$)/mu)
              expect(bare.replace(/\d\d:\d\d:\d\d/, '')).not.toMatch(/:[a-z0-9_+'-]+:/i)
            }
        }
      }),
    )
  })

  test('makes no link of its own, not even where Slack would find an address', () => {
    const alert = alertOf({ headline: 'see https://evil.example', url: '' })
    expect(plainMessage(alert, englishDisplay).text).not.toContain('://')
  })

  test('keeps within the limits of Slack, whatever its length', () => {
    const long = fc.tuple(
      fc.constantFrom('&', '<', '*', ':a', 'ب', '👩‍👩‍👧‍👦', 'a\n', '\u0301', '\ud800'),
      fc.nat(9_000),
    )
    fc.assert(
      fc.property(long, long, ([a, m], [b, n]) => {
        const url = `https://example.com/?${'&'.repeat(n % 3_000)}`
        const alert = alertOf({
          headline: a.repeat(m),
          why: b.repeat(n),
          symbol: a.repeat(n),
          kind: b.repeat(m),
          url,
        })
        const message = slackMessage(alert, persianDisplay)
        for (const { text, charsMax } of pieces(message)) {
          expect(text.length).toBeLessThanOrEqual(charsMax)
          expect(text.isWellFormed()).toBe(true)
        }
        expect(JSON.stringify(message).length).toBeLessThan(20_000)
      }),
      { numRuns: 60 },
    )
  })

  test('is cut between characters as people see them', () => {
    const family = '👩‍👩‍👧‍👦'
    const { text } = slackMessage(alertOf({ headline: family.repeat(500), why: null }), englishDisplay)
    const title = text.split('\n')[0]?.slice(1, -1) ?? ''
    expect(title.replaceAll(family, '')).toBe('')
    expect(title.length).toBeGreaterThan(500)
  })

  test.each([
    ['javascript:alert(1)'],
    ['data:text/html,x'],
    ['https://user:pass@example.com/'],
    ['//example.com'],
    ['not a url'],
    [`https://example.com/${'a'.repeat(2_100)}`],
  ])('as the url %s makes no link', (url) => {
    expect(JSON.stringify(slackMessage(alertOf({ url }), englishDisplay))).not.toMatch(/<[a-z]+:/)
  })

  test('in a url cannot end the link', () => {
    const text = slackMessage(alertOf({ url: 'https://example.com/a|b>c<d q"' }), englishDisplay).text
    expect(text).toContain('<https://example.com/a%7Cb%3Ec%3Cd%20q%22|')
  })

  test('between letters keeps its underscores', () => {
    expect(slackMessage(alertOf({ symbol: 'USD_IRR' }), englishDisplay).text).toContain('USD_IRR')
  })
})

test('Persian lines start with a right-to-left mark, and values of a fact are isolated', () => {
  const lines = slackMessage(persian, persianDisplay).text.split('\n')
  expect(lines[0]).toMatch(/^\u200fفولاد/)
  expect(lines).toContain('نماد: \u200f\u2068فولاد\u2069')
  expect(lines).toContain('نوع: \u200f\u2068price\u2069')
})

describe('a list', () => {
  const parcels = [persian, english, hostile].map((alert) => ({ alert }))
  const address = 'https://example.com/alerts/4711?ref=feed&tab=rules'

  test.each([
    ['persian', persianDisplay],
    ['english', englishDisplay],
  ] as const)('in %s of all samples is the one that was looked at', async (name, display) => {
    const text = `${JSON.stringify(blocks.slackList(parcels, display), null, 2)}\n`
    await expect(text).toMatchFileSnapshot(golden(`list-${name}`))
  })

  test('names the count, and each alert with its link, time and number', () => {
    const { blocks: made = [], text } = blocks.slackList(parcels, englishDisplay)
    expect(made).toHaveLength(7)
    expect(JSON.stringify(made[0])).toContain('*3 alerts*')
    for (const part of [text, JSON.stringify(made)])
      for (const word of [
        'XAU_USD',
        '4712',
        '30 Aban 1405 (21 November 2026)',
        `<${address.replace('&', '&amp;')}|`,
      ])
        expect(part).toContain(word)
  })

  test('of hostile text neither mentions, links nor formats', () => {
    for (const message of [
      blocks.slackList(parcels, englishDisplay),
      blocks.plainList(parcels, englishDisplay),
    ])
      for (const { text } of pieces(message)) expect(text).not.toMatch(/<[!@#]|<https:\/\/evil|`/)
  })

  test('of as many alerts as it takes is split into messages that Slack takes', () => {
    for (const piece of ['&', 'ب', '<a', '👩‍👩‍👧‍👦', 'short ']) {
      const long = piece.repeat(piece === 'short ' ? 5 : 3_000)
      const url = `https://example.com/?${'&'.repeat(250)}`
      const alert = alertOf({ headline: long, why: long, symbol: long, kind: long, url, ruleIds: [long] })
      const all = Array.from({ length: blocks.listMax }, () => ({ alert }))
      const parts = blocks.splitList(all, persianDisplay)
      expect(parts.flat()).toHaveLength(blocks.listMax)
      for (const part of parts) {
        const message = blocks.slackList(part, persianDisplay)
        expect(message.blocks?.length).toBeLessThanOrEqual(50)
        const [text, ...inBlocks] = pieces(message)
        for (const inBlock of inBlocks) expect(inBlock.text.length).toBeLessThanOrEqual(inBlock.charsMax)
        expect(inBlocks.reduce((sum, each) => sum + each.text.length, 0)).toBeLessThanOrEqual(13_000)
        expect(text?.text.length).toBeLessThan(40_000)
      }
    }
  })

  test('says of each alert all that a message of its own says, in as few messages as hold it', () => {
    const all = Array.from({ length: 20 }, (_, index) => ({
      alert: alertOf({
        id: 100 + index,
        headline: `headline ${index} ${'h'.repeat(500)}`,
        why: `short ${index}\n${`reason ${index} `.repeat(150)}`,
        url: `https://example.com/${index}/${'a'.repeat(1_500)}`,
        firedAt: new Date(Date.UTC(2026, 10, 21, 5, 30, (index * 7) % 20)).toISOString(),
      }),
    }))
    const parts = blocks.splitList(all, englishDisplay)
    // Each takes some 3,800 characters of 12,000.
    expect(parts.map(({ length }) => length)).toEqual([3, 3, 3, 3, 3, 3, 2])
    const ids = parts.flat().map(({ alert }) => alert.id)
    expect(ids.toSorted((a, b) => a - b)).toEqual(all.map(({ alert }) => alert.id))
    const times = parts.flat().map(({ alert }) => alert.firedAtMs ?? 0)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(blocks.splitList(all.toReversed(), englishDisplay)).toEqual(parts)
    for (const part of parts)
      for (const message of [
        blocks.slackList(part, englishDisplay),
        blocks.plainList(part, englishDisplay),
      ]) {
        const said = pieces(message)
          .map(({ text }) => text)
          .join('\n')
        for (const { alert } of part) {
          const own = blocks.plainMessage({ alert }, englishDisplay).text
          const [title = '', , , , short = '', reason = ''] = own.split('\n')
          expect(reason.length).toBeGreaterThan(1_000)
          for (const line of [title, short, reason, `<${alert.url}|`]) expect(said).toContain(line)
        }
      }
  })
})
