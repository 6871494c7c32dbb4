import type { Alert } from '../alert/alert.ts'
import type { AlertContext } from '../alert/context.ts'
import { type Display, displayDirection, firedTime, linkOf, titleOf } from '../alert/text/display.ts'
import {
  betweenFacts,
  cut,
  type Direction,
  directionMark,
  directionOf,
  fewLines,
  isolate,
  oneLine,
  shares,
} from '../alert/text/text.ts'
import { heldBackText, wordsOf } from '../alert/text/words.ts'
import { contextFacts } from './context-facts.ts'
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
  /** Not shown in lists of alerts: they leave out the label (`word`), and without it the value means nothing. */
  readonly isLong?: true
  /** The value comes from the alert's context. */
  readonly isKnown?: true
}

interface ContentLimits {
  readonly titleCharsMax: number
  readonly factCharsMax: number
  readonly whyCharsMax: number
  readonly whyLinesMax: number
  /** The message shows the chart of the alert's context. */
  readonly hasPicture?: boolean
}

export function contentOf(
  { alert, heldBack = 0, context }: Parcel,
  display: Display,
  limits: ContentLimits,
): Content {
  const around = displayDirection(display)
  const known = context === undefined ? [] : knownOf(context, alert, display, limits)
  const title = titleOf(alert)
  return {
    title: { text: cut(title, limits.titleCharsMax), direction: directionOf(title, around) },
    url: linkOf(alert),
    facts: [...factsOf(alert, display, limits.factCharsMax), ...known],
    why: whyOf(alert, { ...limits, whyCharsMax: limits.whyCharsMax - charsOf(known) }, around),
    origin: originOf(alert, display, limits.factCharsMax),
    heldBack: heldBackText(heldBack, display),
    around,
  }
}

/** Where it comes from, and how many were held back: shown small at the end. */
export function smallPrint({ origin, heldBack }: Content): string[] {
  return heldBack === undefined ? [...origin] : [...origin, heldBack]
}

/** The same as one line, each part as `write` writes it. A dot would be one more zero of the number that is held back. */
export function smallLine({ origin, heldBack, around }: Content, write: (part: string) => string): string {
  const from = origin.map(write).join(' · ')
  return heldBack === undefined ? from : from + betweenFacts(around) + write(heldBack)
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

/** Its room is taken from that of the reasons, so that a message with context is no longer than one without. */
function knownOf(
  context: AlertContext,
  { firedAtMs }: Alert,
  display: Display,
  { whyCharsMax, hasPicture }: ContentLimits,
): Fact[] {
  const shown: Fact[] = []
  let room = whyCharsMax * contextShare
  for (const { word, value, inList } of contextFacts(context, display, { hasPicture, firedAtMs })) {
    const fact: Fact = { word, value, isKnown: true, ...(inList ? {} : { isLong: true }) }
    room -= charsOf([fact])
    if (room < 0) break
    shown.push(fact)
  }
  return shown
}

const contextShare = 0.6
/** Of one fact beside its text: marks of direction, a colon, a line break. */
const factFrameChars = 10

function charsOf(facts: readonly Fact[]): number {
  return facts.reduce((sum, { word, value }) => sum + word.length + value.length + factFrameChars, 0)
}

/** For messages of few lines: what the alert says, and as much of its context as one line has room for. */
export function shortFacts({ facts, around }: Content): { own: readonly Fact[]; known: string | undefined } {
  const mark = directionMark(around)
  const parts: string[] = []
  let room = knownLineCharsMax
  for (const { word, value } of facts.filter(({ isKnown = false }) => isKnown)) {
    room -= word.length + value.length + factFrameChars
    if (room < 0) break
    parts.push(`${word}: ${isolate(value)}`)
  }
  return {
    own: facts.filter(({ isKnown = false }) => !isKnown),
    known: parts.length === 0 ? undefined : parts.join(mark + betweenFacts(around) + mark),
  }
}

const knownLineCharsMax = 200

/** What a list of alerts shows of each, without the labels. */
export function listValues({ facts }: Content): string[] {
  return facts.filter(({ isLong = false }) => !isLong).map(({ value }) => value)
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
