import type { Display } from '../../alert/display.ts'
import type { Direction } from '../../alert/text.ts'
import { countText, wordsOf } from '../../alert/words.ts'
import type { Parcel } from '../sink.ts'
import { type Fact, type Piece, type Story, smallPrint, storyOf } from '../story.ts'
import { directed, link, valueLine } from './mrkdwn.ts'

/**
 * An alert, or a list of them, as a Slack message. Pure: the same alerts and display make the same message. Every text
 * stays below Slack's limit for its place, and every upstream text goes through `mrkdwn`.
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
const limits = { titleCharsMax: 600, factCharsMax: 300, whyCharsMax: 2_400, whyLinesMax: 12 } as const
const contextCharsMax = 600

/**
 * Slack allows 50 blocks; some 13,000 characters in all of them. An alert of a list has two blocks, and a list that is
 * too long even so goes out as plain text.
 */
export const listMax = 20
const listLimits = { titleCharsMax: 180, factCharsMax: 90, whyCharsMax: 160, whyLinesMax: 1 } as const
const listAddressCharsMax = 300

export function slackMessage(parcel: Parcel, display: Display): SlackMessage {
  return { ...plainMessage(parcel, display), blocks: blocks(storyOf(parcel, display, limits), display) }
}

/** The same alert without blocks, for the day that Slack takes none of ours. */
export function plainMessage(parcel: Parcel, display: Display): SlackMessage {
  const story = storyOf(parcel, display, limits)
  const { url, held } = story
  return message([
    titleLine(story.title, limits.titleCharsMax),
    ...story.facts.map((fact) => `${fact.word}: ${factValue(fact, story.around)}`),
    ...whyLines(story),
    ...(held === undefined ? [] : [held]),
    ...(url === undefined ? [] : [link(url, wordsOf(display).open)]),
  ])
}

/** A burst of alerts as one message, at most `listMax`. */
export function slackList(parcels: readonly Parcel[], display: Display): SlackMessage {
  const stories = parcels.map((parcel) => storyOf(parcel, display, listLimits))
  const count = mrkdwnText(`*${countText(parcels.length, display)}*`)
  return {
    ...plainList(parcels, display),
    blocks: [
      { type: 'section', text: count },
      ...stories.flatMap((story): SlackBlock[] => [
        { type: 'section', text: mrkdwnText([`*${listTitle(story)}*`, ...listWhy(story)].join('\n')) },
        { type: 'context', elements: [mrkdwnText(listFacts(story))] },
      ]),
    ],
  }
}

export function plainList(parcels: readonly Parcel[], display: Display): SlackMessage {
  const stories = parcels.map((parcel) => storyOf(parcel, display, listLimits))
  const lines = stories.flatMap((story) => [`• ${listTitle(story)}`, listFacts(story)])
  return message([countText(parcels.length, display), ...lines])
}

function listTitle({ title, url }: Story): string {
  const label = titleLine(title, listLimits.titleCharsMax)
  return url === undefined || url.length > listAddressCharsMax ? label : link(url, label)
}

function listWhy({ why }: Story): string[] {
  return why.map(({ text, direction }) => directed(text, listLimits.whyCharsMax, direction))
}

function listFacts(story: Story): string {
  const values = [...story.facts.map(({ value }) => value), ...smallPrint(story)]
  const charsMax = listLimits.factCharsMax + 10
  return values.map((value) => valueLine(value, charsMax, story.around)).join(' · ')
}

function message(lines: readonly string[]): SlackMessage {
  return { text: lines.join('\n'), unfurl_links: false, unfurl_media: false, link_names: false }
}

function blocks(story: Story, display: Display): SlackBlock[] {
  const { url, held, around } = story
  const title = titleLine(story.title, limits.titleCharsMax)
  const fields = story.facts.map((fact) => mrkdwnText(`*${fact.word}*\n${factValue(fact, around)}`))
  const why = whyLines(story)
  const origin = story.origin.map((part) => valueLine(part, contextCharsMax, around)).join(' · ')
  // Slack refuses a section that is empty.
  return [
    { type: 'section', text: mrkdwnText(`*${url === undefined ? title : link(url, title)}*`) },
    ...(fields.length === 0 ? [] : [{ type: 'section', fields } as const]),
    ...(why.length === 0 ? [] : [whySection(why, display)]),
    { type: 'context', elements: [origin, ...(held === undefined ? [] : [held])].map(mrkdwnText) },
  ]
}

function whySection(lines: readonly string[], display: Display): SlackBlock {
  return { type: 'section', text: mrkdwnText([`*${wordsOf(display).why}*`, ...lines].join('\n')) }
}

function titleLine({ text, direction }: Piece, charsMax: number): string {
  return directed(text, charsMax, direction)
}

function factValue({ value }: Fact, around: Direction): string {
  return valueLine(value, limits.factCharsMax, around)
}

function whyLines({ why }: Story): string[] {
  const charsMax = Math.floor(limits.whyCharsMax / why.length)
  return why.map(({ text, direction }) => directed(text, charsMax, direction))
}

function mrkdwnText(text: string): SlackText {
  return { type: 'mrkdwn', text, verbatim: true }
}
