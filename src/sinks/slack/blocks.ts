import type { Alert } from '../../alert/alert.ts'
import { type Display, displayDirection, firedTime, linkOf, titleOf } from '../../alert/display.ts'
import { type Direction, directionOf, fewLines } from '../../alert/text.ts'
import { heldBackText, wordsOf } from '../../alert/words.ts'
import { directed, link, valueLine } from './mrkdwn.ts'

/**
 * An alert as a Slack message. Pure: the same alert and display make the same message. Every text stays below Slack's
 * limit for its place, and every upstream text goes through `mrkdwn`.
 */
export interface SlackMessage {
  /** What notifications and screen readers show. */
  readonly text: string
  readonly blocks?: SlackBlock[]
  readonly unfurl_links: false
  readonly unfurl_media: false
  readonly link_names: false
}

export type SlackBlock =
  | { readonly type: 'section'; readonly text: SlackText }
  | { readonly type: 'section'; readonly fields: SlackText[] }
  | { readonly type: 'context'; readonly elements: SlackText[] }

/** `verbatim`: Slack makes no links, channels or people out of plain words. */
export interface SlackText {
  readonly type: 'mrkdwn'
  readonly text: string
  readonly verbatim: true
}

/** Slack allows 3,000 in a section, 2,000 in a field; the address of a link takes up to 2,300 of the section. */
const titleCharsMax = 600
const whyCharsMax = 2_400
const whyLinesMax = 12
const fieldCharsMax = 300
const contextCharsMax = 600

/** `heldBack`: how many alerts like this one were held back before it. */
export function slackMessage(alert: Alert, display: Display, heldBack = 0): SlackMessage {
  return { ...plainMessage(alert, display, heldBack), blocks: blocks(alert, display, heldBack) }
}

/** The same alert without blocks, for the day that Slack takes none of ours. */
export function plainMessage(alert: Alert, display: Display, heldBack = 0): SlackMessage {
  const around = displayDirection(display)
  const url = linkOf(alert)
  const lines = [
    titleLine(alert, around),
    ...facts(alert, display).map(([word, value]) => `${word}: ${value}`),
    ...whyLines(alert, around),
    ...heldLine(heldBack, display),
    ...(url === undefined ? [] : [link(url, wordsOf(display).open)]),
  ]
  return { text: lines.join('\n'), unfurl_links: false, unfurl_media: false, link_names: false }
}

function blocks(alert: Alert, display: Display, heldBack: number): SlackBlock[] {
  const around = displayDirection(display)
  const title = titleLine(alert, around)
  const url = linkOf(alert)
  const fields = facts(alert, display).map(([word, value]) => mrkdwnText(`*${word}*\n${value}`))
  const why = whyLines(alert, around)
  // Slack refuses a section that is empty.
  return [
    { type: 'section', text: mrkdwnText(`*${url === undefined ? title : link(url, title)}*`) },
    ...(fields.length === 0 ? [] : [{ type: 'section', fields } as const]),
    ...(why.length === 0 ? [] : [whySection(why, display)]),
    { type: 'context', elements: [origin(alert, display), ...heldLine(heldBack, display)].map(mrkdwnText) },
  ]
}

function whySection(lines: readonly string[], display: Display): SlackBlock {
  return { type: 'section', text: mrkdwnText([`*${wordsOf(display).why}*`, ...lines].join('\n')) }
}

function titleLine(alert: Alert, around: Direction): string {
  const title = titleOf(alert)
  return directed(title, titleCharsMax, directionOf(title, around))
}

/** What is known beside the headline, each with its word. */
function facts(alert: Alert, display: Display): [string, string][] {
  const words = wordsOf(display)
  const around = displayDirection(display)
  const all: [string, string | null][] = [
    [words.symbol, alert.symbol],
    [words.kind, alert.kind],
    [words.fired, firedTime(alert, display)],
  ]
  return all.flatMap(([word, value]) =>
    value === null || value.trim() === '' ? [] : [[word, valueLine(value, fieldCharsMax, around)]],
  )
}

function whyLines(alert: Alert, around: Direction): string[] {
  const lines = fewLines(alert.why ?? '', whyLinesMax)
  // One direction for all of it: a line of mostly Latin words inside a Persian reason is still part of it.
  const own = directionOf(lines.join(' '), around)
  return lines.map((line) => directed(line, Math.floor(whyCharsMax / lines.length), own))
}

/** Where the alert comes from, to find it again: source, number, rules. */
function origin(alert: Alert, display: Display): string {
  const rules = alert.ruleIds.length === 0 ? '' : ` · ${wordsOf(display).rules} ${alert.ruleIds.join(', ')}`
  return valueLine(`${alert.source} · ${alert.id}${rules}`, contextCharsMax, displayDirection(display))
}

function heldLine(heldBack: number, display: Display): string[] {
  const text = heldBackText(heldBack, display)
  return text === undefined ? [] : [text]
}

function mrkdwnText(text: string): SlackText {
  return { type: 'mrkdwn', text, verbatim: true }
}
