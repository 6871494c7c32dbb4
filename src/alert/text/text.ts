/**
 * Text of the API made safe to show. Whatever a headline holds (line breaks, terminal escapes, marks that turn the reading
 * direction around), it cannot reach beyond the place it is put in, and no cut leaves half a character.
 */

const rightToLeftMark = '\u200f'
const leftToRightMark = '\u200e'
const firstStrongIsolate = '\u2068'
const popDirectionalIsolate = '\u2069'

/** Embeddings, overrides and isolates: the marks that can make a text read as another. */
const bidiControls = /[\u202a-\u202e\u2066-\u2069]/g
const controls = /[\p{Cc}\u2028\u2029\ufeff]+/gu
const rtlLetters = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/gu
/** The sign of the rial is none, and is read from right to left as those are of which it is made. */
const letters = /[\p{L}\ufdfc]/gu
const anyRtlLetter = new RegExp(rtlLetters.source, 'u')
const anyLtrLetter = new RegExp(`(?!${rtlLetters.source})\\p{L}`, 'u')
/** How much of a text decides its direction. */
const directionCharsMax = 500

/** Made when a text is first cut: it takes longer than most modules take to load. */
let known: Intl.Segmenter | undefined
const segmenter = () => (known ??= new Intl.Segmenter('fa', { granularity: 'grapheme' }))
/** The longest run that may hang together as one character; beyond it lies a pile of combining marks. */
const graphemeCharsMax = 64

/** One line: controls and line breaks become spaces, direction controls go, half characters are replaced. */
export function oneLine(text: string): string {
  return text.toWellFormed().replace(bidiControls, '').replace(controls, ' ').replace(/\s+/g, ' ').trim()
}

/** Persian and Arabic digits as the ASCII ones: keyboards mix them. */
export function asciiDigits(text: string): string {
  return text.replace(/[۰-۹٠-٩]/g, (digit) => String(digit.charCodeAt(0) & 0xf))
}

/** Like `oneLine`, but line breaks stay; at most `linesMax` lines, none empty. */
export function fewLines(text: string, linesMax: number): string[] {
  const lines = text
    .split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/, 1_000)
    .map(oneLine)
    .filter((line) => line !== '')
  if (lines.length <= linesMax) return lines
  return [...lines.slice(0, linesMax - 1), lines.slice(linesMax - 1).join(' ')]
}

/**
 * `text` cut between two characters as people count them, so that what `write` makes of it is at most `charsMax` UTF-16
 * units long (no limit that a receiver may count by is shorter), with an ellipsis where something went.
 */
export function cut(text: string, charsMax: number, write: (part: string) => string = asIs): string {
  if (text.length <= charsMax && write(text).length <= charsMax) return text
  let kept = ''
  let length = write('…').length
  for (const character of charactersOf(text, charsMax)) {
    length += write(character).length
    if (length > charsMax) break
    kept += character
  }
  return `${kept.trimEnd()}…`
}

/**
 * How much of `total` each text of these lengths gets: short ones all that they need, long ones an even share of what is
 * left.
 */
export function shares(lengths: readonly number[], total: number): number[] {
  const given = lengths.map(() => 0)
  let left = total
  const shortestFirst = [...lengths.entries()].sort(([, a], [, b]) => a - b)
  for (const [place, [index, length]] of shortestFirst.entries()) {
    const share = Math.min(length, Math.floor(left / (lengths.length - place)))
    given[index] = share
    left -= share
  }
  return given
}

/** Prevents that a text of unknown direction moves the text around it. */
export function isolate(text: string): string {
  return `${firstStrongIsolate}${text}${popDirectionalIsolate}`
}

/**
 * The direction most letters have; `otherwise` when there are none. Not the first letter's: Persian lines often start
 * with a Latin ticker, English ones with a Persian symbol.
 */
export function directionOf(text: string, otherwise: Direction = 'ltr'): Direction {
  const start = text.slice(0, directionCharsMax)
  const all = start.match(letters)?.length ?? 0
  const rtl = start.match(rtlLetters)?.length ?? 0
  if (all === 0) return otherwise
  return rtl * 2 >= all ? 'rtl' : 'ltr'
}

export type Direction = 'rtl' | 'ltr'

/** The mark that makes a line of plain text read in this direction whatever it starts with. */
export function directionMark(direction: Direction): string {
  return direction === 'rtl' ? rightToLeftMark : leftToRightMark
}

/**
 * A text from outside in a line of this direction, closed by its mark, also where only a part of it is of the other one: what stands
 * after it is shown after it.
 */
export function closed(text: string, direction: Direction): string {
  const other = direction === 'rtl' ? anyLtrLetter : anyRtlLetter
  return other.test(text) ? text + directionMark(direction) : text
}

/** Between two parts of a figure. Beside Persian digits the dot of English lines reads as one more zero. */
export function betweenParts(direction: Direction): string {
  return direction === 'rtl' ? '، ' : ' · '
}

/** Between figures, which may have several parts. */
export function betweenFacts(direction: Direction): string {
  return direction === 'rtl' ? '؛ ' : ' · '
}

function asIs(text: string): string {
  return text
}

/** Lazily, and from no more of the text than could be kept: a text may be megabytes long. */
function* charactersOf(text: string, charsMax: number): Generator<string> {
  for (const { segment } of segmenter().segment(text.slice(0, charsMax + graphemeCharsMax).toWellFormed())) {
    if (segment.length <= graphemeCharsMax) yield segment
    else yield* segment
  }
}
