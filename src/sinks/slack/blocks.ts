import type { Display } from '../../alert/text/display.ts'
import { betweenFacts, type Direction, shares } from '../../alert/text/text.ts'
import { countText, wordsOf } from '../../alert/text/words.ts'
import { type Content, contentOf, type Line, listValues, smallPrint } from '../content.ts'
import { pack } from '../pack.ts'
import type { Parcel } from '../sink.ts'
import { directed, directedCharsMax, link, valueLine } from './mrkdwn.ts'

/**
 * An alert, or a list of them, as a Slack message. Pure: the same alerts and display make the same message. Every text
 * stays below Slack's limit for its place, and every text of the API goes through `mrkdwn`.
 */
export interface SlackMessage {
  /** What notifications and screen readers show. */
  readonly text: string
  readonly blocks?: SlackBlock[]
  readonly unfurl_links: false
  readonly unfurl_media: false
  readonly link_names: false
}

type SlackBlock =
  | { readonly type: 'section'; readonly text: SlackText }
  | { readonly type: 'section'; readonly fields: SlackText[] }
  | { readonly type: 'context'; readonly elements: SlackText[] }

/** `verbatim`: Slack makes no links, channels or mentions out of plain text. */
interface SlackText {
  readonly type: 'mrkdwn'
  readonly text: string
  readonly verbatim: true
}

/** Slack allows 3,000 in a section, 2,000 in a field; the address of a link takes up to 2,300 of the section. */
const limits = { titleCharsMax: 600, factCharsMax: 300, whyCharsMax: 2_400, whyLinesMax: 12 } as const
const contextCharsMax = 600

/** How many alerts are gathered for a list. */
export const listMax = 20
const sectionCharsMax = 3_000
/** Slack allows 50 blocks, some 13,000 characters in all of them, and 40,000 in the text beside them. */
const blocksMax = 50
const messageCharsMax = 12_000

export function slackMessage(parcel: Parcel, display: Display): SlackMessage {
  return { ...plainMessage(parcel, display), blocks: blocks(contentOf(parcel, display, limits), display) }
}

/** The same alert without blocks, for when Slack refuses the blocks. */
export function plainMessage(parcel: Parcel, display: Display): SlackMessage {
  const content = contentOf(parcel, display, limits)
  const { url, heldBack } = content
  return message([
    titleLine(content.title, limits.titleCharsMax),
    ...content.facts.map((fact) => `${fact.word}: ${factValue(fact.value, content.around)}`),
    ...whyLines(content),
    ...(heldBack === undefined ? [] : [heldBack]),
    ...(url === undefined ? [] : [link(url, wordsOf(display).open)]),
  ])
}

/** A burst of alerts as one message, each with its whole text. `splitList` keeps it within Slack's limits. */
export function slackList(parcels: readonly Parcel[], display: Display): SlackMessage {
  const count = mrkdwnText(`*${countText(parcels.length, display)}*`)
  const entries = parcels.flatMap((parcel) => listBlocks(contentOf(parcel, display, limits)))
  return { ...plainList(parcels, display), blocks: [{ type: 'section', text: count }, ...entries] }
}

export function plainList(parcels: readonly Parcel[], display: Display): SlackMessage {
  const lines = parcels.flatMap((parcel) => listLines(contentOf(parcel, display, limits)))
  return message([countText(parcels.length, display), ...lines])
}

/** Which alerts of a burst share a message. */
export function splitList<P extends Parcel>(parcels: readonly P[], display: Display): P[][] {
  const takes = (parcel: P) => {
    const content = contentOf(parcel, display, limits)
    const made = listBlocks(content)
    return [made.length, Math.max(charsIn(made), listLines(content).join('\n').length + 1)]
  }
  return pack(parcels, takes, [blocksMax - 1, messageCharsMax])
}

function listBlocks(content: Content): SlackBlock[] {
  const title = `*${listTitle(content)}*`
  const why = whyLines(content).join('\n')
  const together = [title, why].filter((text) => text !== '').join('\n')
  const sections = together.length <= sectionCharsMax ? [together] : [title, why]
  return [
    ...sections.map((text): SlackBlock => ({ type: 'section', text: mrkdwnText(text) })),
    { type: 'context', elements: [mrkdwnText(listFacts(content))] },
  ]
}

function listLines(content: Content): string[] {
  return [`• ${listTitle(content)}`, ...whyLines(content), listFacts(content)]
}

function listTitle({ title, url }: Content): string {
  const label = titleLine(title, limits.titleCharsMax)
  return url === undefined ? label : link(url, label)
}

function listFacts(content: Content): string {
  const facts = listValues(content).map((value) => factValue(value, content.around))
  const rest = smallPrint(content).map((part) => valueLine(part, contextCharsMax, content.around))
  return [...facts, ...rest].join(betweenFacts(content.around))
}

function charsIn(made: readonly SlackBlock[]): number {
  const texts = made.flatMap((block): SlackText[] => {
    if ('fields' in block) return block.fields
    return 'elements' in block ? block.elements : [block.text]
  })
  return texts.reduce((sum, { text }) => sum + text.length, 0)
}

function message(lines: readonly string[]): SlackMessage {
  return { text: lines.join('\n'), unfurl_links: false, unfurl_media: false, link_names: false }
}

function blocks(content: Content, display: Display): SlackBlock[] {
  const { url, heldBack, around } = content
  const title = titleLine(content.title, limits.titleCharsMax)
  const fields = content.facts.map((fact) => mrkdwnText(`*${fact.word}*\n${factValue(fact.value, around)}`))
  const why = whyLines(content)
  const origin = content.origin.map((part) => valueLine(part, contextCharsMax, around)).join(' · ')
  // Slack refuses a section that is empty.
  return [
    { type: 'section', text: mrkdwnText(`*${url === undefined ? title : link(url, title)}*`) },
    ...(fields.length === 0 ? [] : [{ type: 'section', fields } as const]),
    ...(why.length === 0 ? [] : [whySection(why, display)]),
    { type: 'context', elements: [origin, ...(heldBack === undefined ? [] : [heldBack])].map(mrkdwnText) },
  ]
}

function whySection(lines: readonly string[], display: Display): SlackBlock {
  return { type: 'section', text: mrkdwnText([`*${wordsOf(display).why}*`, ...lines].join('\n')) }
}

function titleLine({ text, direction }: Line, charsMax: number): string {
  return directed(text, charsMax, direction)
}

function factValue(value: string, around: Direction): string {
  return valueLine(value, limits.factCharsMax, around)
}

function whyLines({ why }: Content): string[] {
  const room = shares(
    why.map(({ text }) => directedCharsMax(text)),
    limits.whyCharsMax,
  )
  return why.map(({ text, direction }, index) => directed(text, room[index] ?? 0, direction))
}

function mrkdwnText(text: string): SlackText {
  return { type: 'mrkdwn', text, verbatim: true }
}
