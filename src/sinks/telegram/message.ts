import type { Display } from '../../alert/text/display.ts'
import { type Direction, directionMark, isolate } from '../../alert/text/text.ts'
import { wordsOf } from '../../alert/text/words.ts'
import { joiner, withoutAutolinks } from '../autolinks.ts'
import { contentOf, type Line, smallLine } from '../content.ts'
import type { Parcel } from '../sink.ts'

/**
 * An alert as the HTML of Telegram's messages. Telegram takes 4,096 characters, counted after its markup is read, and
 * the parts stay below that even with all the joiners of `withoutAutolinks`.
 */
export function telegramText(parcel: Parcel, display: Display, hasPicture = false): string {
  const content = contentOf(parcel, display, { ...limits, hasPicture })
  const { url, around } = content
  const title = line(content.title)
  const paragraphs = [
    [url === undefined ? `<b>${title}</b>` : `<b><a href="${escapeHtml(url)}">${title}</a></b>`],
    content.facts.map(({ word, value }) => `${mark(around)}${word}: ${isolate(text(value))}`),
    content.why.length === 0 ? [] : [`<blockquote>${content.why.map(line).join('\n')}</blockquote>`],
    [
      `<i>${mark(around)}${wordsOf(display).source}: ${smallLine(content, (part) => isolate(text(part)))}</i>`,
    ],
  ]
  return paragraphs.flatMap((lines) => (lines.length === 0 ? [] : [lines.join('\n')])).join('\n\n')
}

/**
 * The text as the caption of the alert's chart; undefined where it is longer than a caption may be: a picture is not worth a
 * word of the alert.
 */
export function telegramCaption(parcel: Parcel, display: Display): string | undefined {
  const text = telegramText(parcel, display, true)
  return shownChars(text) <= captionCharsMax ? text : undefined
}

const captionCharsMax = 1_024

/** As Telegram counts: UTF-16 units of the text without its markup. */
function shownChars(html: string): number {
  return html.replace(/<[^>]*>/g, '').replace(/&\w+;/g, '&').length
}

const limits = { titleCharsMax: 300, factCharsMax: 150, whyCharsMax: 1_000, whyLinesMax: 15 } as const

function line({ text: words, direction }: Line): string {
  return mark(direction) + text(words)
}

function mark(direction: Direction): string {
  return directionMark(direction)
}

function text(words: string): string {
  return escapeHtml(withoutAutolinks(words).replace(tagOrCommand, (mark) => `${mark}${joiner}`))
}

/** Of #tags, $TAGS and /commands, which Telegram makes into links too. */
const tagOrCommand = /#(?=[\p{L}\p{N}_])|(?<![\p{L}\p{N}])[$/](?=[a-z])/giu

/** These four are all the entities that Telegram knows by name. */
function escapeHtml(words: string): string {
  return words.replace(/[&<>"]/g, (character) => entities[character] ?? character)
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
