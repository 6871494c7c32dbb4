import type { Alert } from '../alert/alert.ts'
import { type Display, displayDirection, firedTime, linkOf, titleOf } from '../alert/display.ts'
import { cut, type Direction, directionOf, fewLines, oneLine, shares } from '../alert/text.ts'
import { heldBackText, wordsOf } from '../alert/words.ts'
import type { Parcel } from './sink.ts'

/**
 * The parts of an alert that people are shown, for each sink to put into its own markup: lines of plain text, cut, free
 * of control characters, and nothing more. They are still text from outside: each sink escapes them.
 */
export interface Content {
  readonly title: Line
  readonly url: string | undefined
  readonly facts: readonly Fact[]
  readonly why: readonly Line[]
  /** Where the alert comes from, to find it again: source, number, rules. */
  readonly origin: readonly string[]
  /** A sentence with the number of similar alerts that were held back before it. */
  readonly heldBack: string | undefined
  /** The direction of the reader's language. */
  readonly around: Direction
}

/** A line that reads in its own direction. */
export interface Line {
  readonly text: string
  readonly direction: Direction
}

export interface Fact {
  readonly word: string
  readonly value: string
}

export interface ContentLimits {
  readonly titleCharsMax: number
  readonly factCharsMax: number
  readonly whyCharsMax: number
  readonly whyLinesMax: number
}

export function contentOf({ alert, heldBack = 0 }: Parcel, display: Display, limits: ContentLimits): Content {
  const around = displayDirection(display)
  const title = titleOf(alert)
  return {
    title: { text: cut(title, limits.titleCharsMax), direction: directionOf(title, around) },
    url: linkOf(alert),
    facts: factsOf(alert, display, limits.factCharsMax),
    why: whyOf(alert, limits, around),
    origin: originOf(alert, display, limits.factCharsMax),
    heldBack: heldBackText(heldBack, display),
    around,
  }
}

/** Where it comes from, and how many were held back: shown small at the end. */
export function smallPrint({ origin, heldBack }: Content): string[] {
  return heldBack === undefined ? [...origin] : [...origin, heldBack]
}

/** What is known beside the headline, each with its label. */
function factsOf(alert: Alert, display: Display, charsMax: number): Fact[] {
  const words = wordsOf(display)
  const all: [string, string | null][] = [
    [words.symbol, alert.symbol],
    [words.kind, alert.kind],
    [words.fired, firedTime(alert, display)],
  ]
  return all.flatMap(([word, given]) => {
    const value = oneLine(given ?? '')
    return value === '' ? [] : [{ word, value: cut(value, charsMax) }]
  })
}

function whyOf(alert: Alert, { whyCharsMax, whyLinesMax }: ContentLimits, around: Direction): Line[] {
  const lines = fewLines(alert.why ?? '', whyLinesMax)
  // One direction for all lines: also for a line of mostly Latin words inside a Persian reason.
  const direction = directionOf(lines.join(' '), around)
  const room = shares(
    lines.map(({ length }) => length),
    whyCharsMax,
  )
  return lines.map((line, index) => ({ text: cut(line, room[index] ?? 0), direction }))
}

function originOf(alert: Alert, display: Display, charsMax: number): string[] {
  const rules = alert.ruleIds.map(oneLine).join(', ')
  const ruled = rules === '' ? [] : [cut(`${wordsOf(display).rules} ${rules}`, charsMax)]
  return [alert.source, String(alert.id), ...ruled]
}
