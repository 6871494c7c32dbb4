import type { Display } from '../../alert/display.ts'
import { directionMark, isolate } from '../../alert/text.ts'
import { wordsOf } from '../../alert/words.ts'
import { inert } from '../inert.ts'
import type { Parcel } from '../sink.ts'
import { type Piece, smallPrint, storyOf } from '../story.ts'

const priorities = { min: 1, low: 2, default: 3, high: 4, max: 5 } as const

export interface NtfyOptions {
  readonly topic: string
  readonly priority: keyof typeof priorities
  readonly tags: readonly string[]
}

/**
 * An alert as ntfy's JSON. Not as headers: they carry no Persian. Its apps show plain text, in which they make links by
 * themselves; ours is `click`.
 */
export function ntfyMessage(parcel: Parcel, display: Display, options: NtfyOptions): object {
  const story = storyOf(parcel, display, limits)
  const mark = directionMark(story.around)
  const lines = [
    ...story.facts.map(({ word, value }) => `${mark}${word}: ${isolate(inert(value))}`),
    ...story.why.map(line),
    `${mark}${wordsOf(display).source}: ${smallPrint(story)
      .map((part) => isolate(inert(part)))
      .join(' · ')}`,
  ]
  return {
    topic: options.topic,
    title: line(story.title),
    message: lines.join('\n'),
    priority: priorities[options.priority],
    ...(options.tags.length === 0 ? {} : { tags: options.tags }),
    ...(story.url === undefined ? {} : { click: story.url }),
    markdown: false,
  }
}

/** A message of more than 4,096 bytes becomes an attachment; a character has three bytes, and a joiner as many. */
const limits = { titleCharsMax: 200, factCharsMax: 80, whyCharsMax: 600, whyLinesMax: 12 } as const

function line({ text, direction }: Piece): string {
  return directionMark(direction) + inert(text)
}
