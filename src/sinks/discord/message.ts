import type { Display } from '../../alert/text/display.ts'
import { cut, directionMark, isolate } from '../../alert/text/text.ts'
import { given } from '../../lib/given.ts'
import { withoutAutolinks } from '../autolinks.ts'
import type { Picture } from '../chart/picture.ts'
import { contentOf, type Line, smallLine } from '../content.ts'
import type { Parcel } from '../sink.ts'
import { timestampOf } from '../timestamp.ts'

/** An alert as one embed of Discord. Nothing in it can mention anybody, format or link. */
interface DiscordMessage {
  readonly username?: string
  readonly embeds: readonly [DiscordEmbed]
  readonly allowed_mentions: { readonly parse: readonly [] }
  readonly attachments?: readonly {
    readonly id: 0
    readonly filename: string
    readonly description: string
  }[]
}

interface DiscordEmbed {
  readonly title: string
  readonly url?: string
  readonly description?: string
  readonly fields: readonly { readonly name: string; readonly value: string; readonly inline: boolean }[]
  readonly footer: { readonly text: string }
  readonly timestamp?: string
  readonly color: number
  readonly image?: { readonly url: string }
}

export const pictureName = 'chart.png'

/** With a picture, its file goes with the message under `pictureName`. */
export function discordMessage(
  parcel: Parcel,
  display: Display,
  username?: string,
  picture?: Pick<Picture, 'alt'>,
): DiscordMessage {
  const content = contentOf(parcel, display, { ...limits, hasPicture: picture !== undefined })
  const { url, why, around } = content
  return {
    ...(username === undefined ? {} : { username }),
    embeds: [
      {
        title: line({ ...content.title, text: cut(content.title.text, titleCharsMax, longest) }),
        ...(url === undefined ? {} : { url }),
        ...(why.length === 0 ? {} : { description: why.map(line).join('\n') }),
        fields: content.facts.map(({ word, value }) => ({
          name: word,
          value: directionMark(around) + isolate(markdown(value)),
          inline: value.length <= inlineCharsMax,
        })),
        // A footer has no markup: a backslash in it would be shown.
        footer: {
          text: smallLine(content, (part) => isolate(withoutAutolinks(part))),
        },
        ...given({ timestamp: timestampOf(parcel.alert) }),
        color,
        ...(picture === undefined ? {} : { image: { url: `attachment://${pictureName}` } }),
      },
    ],
    ...(picture === undefined
      ? {}
      : { attachments: [{ id: 0, filename: pictureName, description: cut(picture.alt, altCharsMax) }] }),
    allowed_mentions: { parse: [] },
  }
}

/**
 * Discord allows 256 in a title, 4,096 in a description, 1,024 in a field, 2,048 in a footer, 6,000 in all. A character
 * becomes three at most (a joiner and a backslash beside it), and the limits count the result.
 */
const titleCharsMax = 255
const limits = { titleCharsMax, factCharsMax: 200, whyCharsMax: 1_000, whyLinesMax: 15 } as const
const inlineCharsMax = 24
const altCharsMax = 1_000
const color = 0x1f6feb

function line({ text, direction }: Line): string {
  return directionMark(direction) + markdown(text)
}

/** Lists, quotes and headings are recognised only at the start of a line, which is the direction mark. */
function markdown(text: string): string {
  return withoutAutolinks(text).replace(/[\\*_~`|<>[\](){}#:@-]/g, (mark) => `\\${mark}`)
}

/** The longest that `markdown` can make each character, with any neighbours. */
function longest(text: string): string {
  return text.replace(/[\\*_~`|<>[\](){}#:@.。．-]/g, '\\ \u2060')
}
