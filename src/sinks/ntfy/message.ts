import type { Display } from '../../alert/text/display.ts'
import { directionMark, isolate } from '../../alert/text/text.ts'
import { wordsOf } from '../../alert/text/words.ts'
import { withoutAutolinks } from '../autolinks.ts'
import { contentOf, type Line, shortFacts, smallLine } from '../content.ts'
import type { Parcel } from '../sink.ts'

const priorities = { min: 1, low: 2, default: 3, high: 4, max: 5 } as const

interface NtfyOptions {
  readonly topic: string
  readonly priority: keyof typeof priorities
  readonly tags: readonly string[]
}

/**
 * An alert as ntfy's JSON. Not as headers, which cannot contain Persian. Its apps show plain text and make links in it by
 * themselves; the only wanted link is `click`.
 */
export function ntfyMessage(parcel: Parcel, display: Display, options: NtfyOptions): object {
  const content = contentOf(parcel, display, limits)
  const mark = directionMark(content.around)
  const { own, known } = shortFacts(content)
  const lines = [
    ...own.map(({ word, value }) => `${mark}${word}: ${isolate(withoutAutolinks(value))}`),
    ...(known === undefined ? [] : [mark + withoutAutolinks(known)]),
    ...content.why.map(line),
    `${mark}${wordsOf(display).source}: ${smallLine(content, (part) => isolate(withoutAutolinks(part)))}`,
  ]
  return {
    topic: options.topic,
    title: line(content.title),
    message: lines.join('\n'),
    priority: priorities[options.priority],
    ...(options.tags.length === 0 ? {} : { tags: options.tags }),
    ...(content.url === undefined ? {} : { click: content.url }),
    markdown: false,
  }
}

/** A message of more than 4,096 bytes becomes an attachment; a character has three bytes, and a joiner as many. */
const limits = { titleCharsMax: 200, factCharsMax: 80, whyCharsMax: 600, whyLinesMax: 12 } as const

function line({ text, direction }: Line): string {
  return directionMark(direction) + withoutAutolinks(text)
}
