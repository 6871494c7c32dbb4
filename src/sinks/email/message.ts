import { createHash } from 'node:crypto'
import { type Alert, alertKey } from '../../alert/alert.ts'
import { type Display, displayDirection, localDay, titleOf } from '../../alert/text/display.ts'
import { betweenFacts, cut, type Direction, directionMark, isolate } from '../../alert/text/text.ts'
import { countText, wordsOf } from '../../alert/text/words.ts'
import { withoutAutolinks } from '../autolinks.ts'
import type { Picture } from '../chart/picture.ts'
import { type Content, contentOf, type Line, listValues, smallPrint } from '../content.ts'
import { pack } from '../pack.ts'
import { replayHeaders } from '../replay.ts'
import type { Parcel } from '../sink.ts'
import { domainOf, type Mailbox } from './address.ts'
import { digestEntry, digestPage } from './digest-page.ts'
import { type MailPicture, mailPage } from './page.ts'

/**
 * An alert, or a digest, as a mail to one recipient. Pure: a repeated attempt makes the same mail under the same
 * Message-ID. One that an operator asked for has another, because mailboxes show a Message-ID once.
 */
export interface MailMessage {
  readonly subject: string
  readonly text: string
  readonly html: string
  readonly messageId: string
  /** A mail that was never sent: those that refer to it make a thread. */
  readonly threadId: string
  /** Of a mail that an operator asked for: the Message-ID of the alert's first one. */
  readonly firstId?: string
  readonly headers: Readonly<Record<string, string>>
  /** The chart that the page shows, by its Content-ID. */
  readonly picture?: MailPicture
}

interface MailParties {
  readonly from: Mailbox
  readonly to: string
}

export const subjectCharsMax = 200
/** How many alerts are gathered for a digest. */
export const digestMax = 40
/** Gmail shows only the first 102 KB of a mail. */
const htmlBytesMax = 90_000
const limits = { titleCharsMax: 300, factCharsMax: 300, whyCharsMax: 4_000, whyLinesMax: 40 } as const

export function mailMessage(
  parcel: Parcel,
  parties: MailParties,
  display: Display,
  chart?: Picture,
): MailMessage {
  const { alert, requestedAtMs } = parcel
  const host = domainOf(parties.from.address)
  const own = `${atom(alertKey(alert))}.${recipientTag(parties.to)}`
  const firstId = `<${own}@${host}>`
  const content = contentOf(parcel, display, limits)
  const picture = chart && { ...chart, contentId: `chart.${own}@${host}` }
  const page = picture === undefined ? content : contentOf(parcel, display, { ...limits, hasPicture: true })
  return {
    subject: cut(titleOf(alert), subjectCharsMax),
    text: textOf(contentParagraphs(content, display)),
    html: mailPage(page, display, picture),
    messageId: requestedAtMs === undefined ? firstId : `<${own}.replay-${requestedAtMs}@${host}>`,
    threadId: `<${atom(threadOf(alert, display))}@${host}>`,
    ...(requestedAtMs === undefined ? {} : { firstId }),
    headers: { ...headersOf(alert.source, host), ...replayHeaders(parcel) },
    ...(picture === undefined ? {} : { picture }),
  }
}

/** Which alerts of a digest share a mail: each has its whole text, and mail programs show the whole mail. */
export function splitDigest<P extends Parcel>(parcels: readonly P[], display: Display): P[][] {
  const frameBytes = Buffer.byteLength(digestPage(countText(digestMax, display), [], display))
  const takes = (parcel: P) => [Buffer.byteLength(digestEntry(contentOf(parcel, display, limits)).markup)]
  return pack(parcels, takes, [htmlBytesMax - frameBytes])
}

/** Several alerts as one mail; its Message-ID is fixed by its alerts, by when an operator asked for them, and its recipient. */
export function digestMessage(
  parcels: readonly Parcel[],
  parties: MailParties,
  display: Display,
): MailMessage {
  const host = domainOf(parties.from.address)
  const contents = parcels.map((parcel) => contentOf(parcel, display, limits))
  const count = countText(parcels.length, display)
  const contentTag = tag(
    parcels
      .map(({ alert, requestedAtMs = '' }) => `${alertKey(alert)}${requestedAtMs && `/${requestedAtMs}`}`)
      .sort()
      .join(' '),
  )
  const sources = [...new Set(parcels.map(({ alert }) => alert.source))]
  return {
    subject: cut([count, ...contents.slice(0, 1).map(({ title }) => title.text)].join(': '), subjectCharsMax),
    text: textOf([[fullLine(count, displayDirection(display))], ...contents.map(entryLines)]),
    html: digestPage(count, contents, display),
    messageId: `<digest.${contentTag}.${recipientTag(parties.to)}@${host}>`,
    threadId: `<digests.${tag(sources.sort().join(' '))}@${host}>`,
    headers: headersOf(sources.length === 1 ? (sources[0] ?? '') : 'all', host),
  }
}

function headersOf(list: string, host: string): Record<string, string> {
  return {
    'Auto-Submitted': 'auto-generated',
    'X-Auto-Response-Suppress': 'All',
    'List-Id': `<${atom(list)}.alerts.${host}>`,
  }
}

function contentParagraphs(content: Content, display: Display): string[][] {
  const { title, url, why, heldBack, origin, around } = content
  return [
    [line(title)],
    content.facts.map(({ word, value }) => fact(word, value, around)),
    why.map(line),
    url === undefined ? [] : [url],
    heldBack === undefined ? [] : [fullLine(heldBack, around)],
    [`${lineMark(around)}${wordsOf(display).source}: ${isolated(origin)}`],
  ]
}

function entryLines(content: Content): string[] {
  const { title, url, why, around } = content
  const values = [...listValues(content), ...smallPrint(content)]
  return [
    line(title),
    ...why.map(line),
    lineMark(around) + isolated(values, betweenFacts(around)),
    ...(url === undefined ? [] : [url]),
  ]
}

function textOf(paragraphs: readonly (readonly string[])[]): string {
  const whole = paragraphs.filter((lines) => lines.length > 0).map((lines) => lines.join('\n'))
  return `${whole.join('\n\n')}\n`
}

function line({ text, direction }: Line): string {
  return fullLine(withoutAutolinks(text), direction)
}

function fullLine(text: string, direction: Direction): string {
  return lineMark(direction) + text
}

function fact(word: string, value: string, around: Direction): string {
  return `${lineMark(around)}${word}: ${isolate(withoutAutolinks(value))}`
}

function isolated(parts: readonly string[], between = ' · '): string {
  return parts.map((part) => isolate(withoutAutolinks(part))).join(between)
}

/** Mail programs start from left to right, so only the other direction needs its mark. */
function lineMark(direction: Direction): string {
  return direction === 'rtl' ? directionMark(direction) : ''
}

/** Alerts of one rule on one day of the reader's time zone are one thread. */
function threadOf(alert: Alert, display: Display): string {
  const day = alert.firedAtMs === null ? 'undated' : localDay(alert.firedAtMs, display.timeZone)
  const rule = alert.ruleIds.length > 0 ? alert.ruleIds.join('-') : `${alert.kind}-${alert.symbol ?? ''}`
  return `${alert.source}.rule-${tag(rule)}.${day}`
}

function recipientTag(recipient: string): string {
  return tag(recipient.toLowerCase())
}

function tag(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 12)
}

/** Characters that RFC 5322 allows in a Message-ID; others as a percent sequence. */
function atom(text: string): string {
  return encodeURIComponent(text).replace(/[^A-Za-z0-9.%_-]/g, '-')
}
