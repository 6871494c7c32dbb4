import { createHash } from 'node:crypto'
import { type Alert, alertKey } from '../../alert/alert.ts'
import { type Display, displayDirection, firedTime, linkOf, localDay, titleOf } from '../../alert/display.ts'
import {
  cut,
  type Direction,
  directionMark,
  directionOf,
  fewLines,
  isolate,
  oneLine,
} from '../../alert/text.ts'
import { heldBackText, wordsOf } from '../../alert/words.ts'
import { domainOf, type Mailbox } from './address.ts'
import { mailPage } from './page.ts'

/** An alert as a mail to one recipient. Pure: a repeated attempt makes the same mail under the same Message-ID. */
export interface MailMessage {
  readonly subject: string
  readonly text: string
  readonly html: string
  readonly messageId: string
  /** A mail that was never sent: those that refer to it make a thread. */
  readonly threadId: string
  readonly headers: Readonly<Record<string, string>>
}

export interface MailParties {
  readonly from: Mailbox
  readonly to: string
}

export const subjectCharsMax = 200
const textCharsMax = 4_000
const whyLinesMax = 40
const factCharsMax = 300

/** `heldBack`: how many alerts like this one were held back before it. */
export function mailMessage(alert: Alert, parties: MailParties, display: Display, heldBack = 0): MailMessage {
  const host = domainOf(parties.from.address)
  return {
    subject: cut(titleOf(alert), subjectCharsMax),
    text: plainText(alert, display, heldBack),
    html: mailPage(alert, display, heldBack),
    messageId: `<${atom(alertKey(alert))}.${recipientTag(parties.to)}@${host}>`,
    threadId: `<${atom(threadOf(alert, display))}@${host}>`,
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      'List-Id': `<${atom(alert.source)}.alerts.${host}>`,
    },
  }
}

function plainText(alert: Alert, display: Display, heldBack: number): string {
  const words = wordsOf(display)
  const around = displayDirection(display)
  const facts: [string, string | null][] = [
    [words.symbol, alert.symbol],
    [words.kind, alert.kind],
    [words.fired, firedTime(alert, display)],
  ]
  const why = fewLines(alert.why ?? '', whyLinesMax)
  const url = linkOf(alert)
  const held = heldBackText(heldBack, display)
  const rules = alert.ruleIds.length === 0 ? '' : ` · ${words.rules} ${alert.ruleIds.map(oneLine).join(', ')}`
  const paragraphs = [
    [ownLine(titleOf(alert), directionOf(titleOf(alert), around))],
    facts.flatMap(([word, value]) =>
      value === null || value.trim() === '' ? [] : [fact(word, value, around)],
    ),
    why.map((line) => ownLine(line, directionOf(why.join(' '), around))),
    url === undefined ? [] : [url],
    held === undefined ? [] : [ownLine(held, around)],
    [fact(words.source, `${alert.source} · ${alert.id}${rules}`, around)],
  ]
  return `${paragraphs
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`
}

function ownLine(text: string, direction: Direction): string {
  return lineMark(direction) + cut(text, textCharsMax)
}

function fact(word: string, value: string, around: Direction): string {
  return `${lineMark(around)}${word}: ${isolate(cut(oneLine(value), factCharsMax))}`
}

/** Mail programs start from left to right, so only the other direction needs its mark. */
function lineMark(direction: Direction): string {
  return direction === 'rtl' ? directionMark(direction) : ''
}

/** Alerts of one rule on one day of the reader's calendar belong together. */
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

/** What RFC 5322 lets stand in a Message-ID; anything else as a percent sequence. */
function atom(text: string): string {
  return encodeURIComponent(text).replace(/[^A-Za-z0-9.%_-]/g, '-')
}
