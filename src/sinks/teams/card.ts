import type { Display } from '../../alert/text/display.ts'
import { type Direction, directionMark, isolate } from '../../alert/text/text.ts'
import { wordsOf } from '../../alert/text/words.ts'
import { withoutAutolinks } from '../autolinks.ts'
import { type Content, contentOf, type Line, smallLine } from '../content.ts'
import type { Parcel } from '../sink.ts'

/**
 * An alert as an Adaptive Card. Text of the API is in text runs, which have no Markdown, so there is nothing to escape;
 * people can only be mentioned by a list that the card does not have.
 */
export function teamsMessage(parcel: Parcel, display: Display): object {
  const content = contentOf(parcel, display, limits)
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: card(content, display),
      },
    ],
  }
}

/** Teams accepts 28 KB. A character has three bytes at most, in JSON a quote has two, and the rest is under 3 KB. */
const limits = { titleCharsMax: 400, factCharsMax: 300, whyCharsMax: 3_000, whyLinesMax: 20 } as const

function card(content: Content, display: Display): object {
  const { title, url, why, around } = content
  const words = wordsOf(display)
  return {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.5',
    lang: display.language,
    rtl: around === 'rtl',
    msteams: { width: 'Full' },
    fallbackText: plain(title),
    body: [
      lines([{ text: plain(title), weight: 'Bolder', size: 'Large' }], title.direction, around),
      ...content.facts.map(({ word, value }) =>
        lines(
          [{ text: `${word}: `, isSubtle: true }, { text: isolate(withoutAutolinks(value)) }],
          around,
          around,
        ),
      ),
      ...why.map((piece) => lines([{ text: plain(piece) }], piece.direction, around)),
      lines(
        [
          {
            text: smallLine(content, (part) => isolate(withoutAutolinks(part))),
            isSubtle: true,
            size: 'Small',
          },
        ],
        around,
        around,
      ),
    ],
    ...(url === undefined ? {} : { actions: [{ type: 'Action.OpenUrl', title: words.open, url }] }),
  }
}

interface Run {
  readonly text: string
  readonly weight?: 'Bolder'
  readonly size?: 'Large' | 'Small'
  readonly isSubtle?: true
}

/** In a card from right to left, Teams shows `Left` at the right: so it is where a line starts in either direction. */
function lines(runs: readonly Run[], direction: Direction, around: Direction): object {
  return {
    type: 'RichTextBlock',
    horizontalAlignment: direction === around ? 'Left' : 'Right',
    spacing: 'Small',
    inlines: runs.map((run) => ({ type: 'TextRun', ...run })),
  }
}

function plain({ text, direction }: Line): string {
  return directionMark(direction) + withoutAutolinks(text)
}
