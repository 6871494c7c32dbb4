import { randomBytes } from 'node:crypto'

/**
 * JSON numbers as they came. JavaScript has one kind of number: of 9007199254740995 it keeps 9007199254740996, of 1e400
 * nothing, of 1.10 not the spelling. Such a number is kept as a `JsonNumber`, and is written again as it was read.
 */
export class JsonNumber {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** JavaScript has this number, and only spells it in another way (1.10, 1e3). */
  get isExact(): boolean {
    return this.#text.length <= exactCharsMax && decimalOf(this.#text) === decimalOf(String(this.valueOf()))
  }

  get text(): string {
    return this.#text
  }

  /** The nearest number that JavaScript has, for reckoning and comparing. */
  valueOf(): number {
    return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, Number(this.#text)))
  }

  /** For texts: as JavaScript spells it, so that 2.0 is 2; every digit as it came where JavaScript would change the number. */
  toString(): string {
    return this.isExact ? String(this.valueOf()) : this.#text
  }

  /** As it came. */
  toJSON(): object {
    return JSON.rawJSON(this.#text)
  }

  /** This and what follows is what templates ask of a value that compares itself. */
  equals(other: unknown): boolean {
    return (typeof other === 'number' || other instanceof JsonNumber) && this.valueOf() === Number(other)
  }

  gt(other: unknown): boolean {
    return this.valueOf() > Number(other)
  }

  geq(other: unknown): boolean {
    return this.valueOf() >= Number(other)
  }

  lt(other: unknown): boolean {
    return this.valueOf() < Number(other)
  }

  leq(other: unknown): boolean {
    return this.valueOf() <= Number(other)
  }
}

/**
 * Parses JSON; a number that would be changed by that becomes a JsonNumber. Throws a SyntaxError. Such a number is parsed as
 * a text with a mark that nobody can know: a reviver takes as long again, and fails on deep nesting. Of a row (`rowDepth`) that
 * has more of them than `rowMax`, the rest are ordinary numbers; a text with more than `max` is refused by a
 * TooManyNumbersError.
 */
export function parseJson(
  text: string,
  { rowMax = Number.POSITIVE_INFINITY, max = Number.POSITIVE_INFINITY } = {},
): unknown {
  const odd = oddNumbers(text, rowMax, max)
  if (odd.length === 0) return JSON.parse(text)
  const mark = randomBytes(12).toString('base64url')
  return withNumbers(JSON.parse(marked(text, odd, mark)), mark)
}

/** Each of these numbers takes as long as a hundred ordinary ones. */
export class TooManyNumbersError extends Error {
  override readonly name = 'TooManyNumbersError'
}

/** One JsonNumber for each spelling: what looks for equal values by identity (`uniq` of templates) finds them. */
export function jsonNumbers(): (text: string) => JsonNumber {
  const known = new Map<string, JsonNumber>()
  return (text) => {
    const made = known.get(text) ?? new JsonNumber(text)
    known.set(text, made)
    return made
  }
}

/** A JsonNumber that JavaScript has as that number, anything else as it is. */
export function numberIn(value: unknown): unknown {
  return value instanceof JsonNumber && value.isExact ? value.valueOf() : value
}

/**
 * A copy of a JSON value in which each number is what `change` returns for it. The numbers come in the order of the text,
 * which is the same for every copy. The value must not be nested deeply.
 */
export function mapNumbers(value: unknown, change: (each: number | JsonNumber) => unknown): unknown {
  if (typeof value === 'number' || value instanceof JsonNumber) return change(value)
  if (Array.isArray(value)) return value.map((each) => mapNumbers(each, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapNumbers(each, change)]))
}

export const jsonNumberForm = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** A longer number is exact by no chance. */
const exactCharsMax = 400

/** What is no number of JSON stays as it is, so that the parser refuses it. */
const strictForm = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Of a page: in its object, in the list `data`. */
const rowDepth = 3

/**
 * The beginnings and ends of the numbers in this JSON text that JSON.parse would change, or their spelling. An ordinary page
 * has none, and looking for them takes little time.
 */
function oddNumbers(text: string, rowMax: number, max: number): number[] {
  const odd: number[] = []
  let depth = 0
  let room = rowMax
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (isOpening(code)) {
      depth += 1
      if (depth === rowDepth) room = rowMax
    } else if (isClosing(code)) {
      if (depth === rowDepth) room = rowMax
      depth -= 1
    } else if (code === minus || isDigit(code)) {
      const from = at
      let isWhole = true
      for (let next = text.charCodeAt(at + 1); isNumberPart(next); next = text.charCodeAt(at + 1)) {
        isWhole &&= isDigit(next)
        at += 1
      }
      if (room <= 0 || (isWhole && code !== minus && at - from < 15)) continue
      const literal = text.slice(from, at + 1)
      if (String(Number(literal)) === literal || !strictForm.test(literal)) continue
      if (odd.length >= 2 * max)
        throw new TooManyNumbersError(`more than ${max} numbers to keep as they came`)
      odd.push(from, at + 1)
      room -= 1
    }
  }
  return odd
}

function marked(text: string, odd: readonly number[], mark: string): string {
  const parts: string[] = []
  let done = 0
  for (let index = 0; index < odd.length; index += 2) {
    const [from = 0, to = 0] = [odd[index], odd[index + 1]]
    parts.push(text.slice(done, from), '"', mark, text.slice(from, to), '"')
    done = to
  }
  return parts.join('') + text.slice(done)
}

/** In place, and without calling itself: JSON.parse accepts depths at which recursion fails. */
function withNumbers(parsed: unknown, mark: string): unknown {
  const numberOf = jsonNumbers()
  const whole = { parsed }
  const open: object[] = [whole]
  for (let node = open.pop(); node; node = open.pop()) {
    for (const key of Array.isArray(node) ? node.keys() : Object.keys(node)) {
      if (typeof key === 'string' && key.startsWith(mark))
        throw new SyntaxError('a number in the place of a name')
      const value: unknown = Reflect.get(node, key)
      if (typeof value === 'string' && value.startsWith(mark))
        Reflect.set(node, key, numberOf(value.slice(mark.length)))
      else if (typeof value === 'object' && value !== null) open.push(value)
    }
  }
  return whole.parsed
}

const quote = 0x22
const backslash = 0x5c
const minus = 0x2d

/** `{` or `[` */
function isOpening(code: number): boolean {
  return code === 0x7b || code === 0x5b
}

function isClosing(code: number): boolean {
  return code === 0x7d || code === 0x5d
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** A digit, `.`, `e`, `E`, `+` or `-`. */
function isNumberPart(code: number): boolean {
  return isDigit(code) || code === minus || code === 0x2e || code === 0x2b || (code | 0x20) === 0x65
}

/** The place of the quotation mark that ends the string that begins at `from`. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes += 1
    if (slashes % 2 === 0) return end
  }
  return text.length
}

/** The same text for the same number: its digits without zeros around them, and where the point is. */
function decimalOf(text: string): string | undefined {
  const match = jsonNumberForm.exec(text)
  if (match === null) return undefined
  const [, whole = '', fraction = '', exponent = '0'] = match
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  const power = Number(exponent) - fraction.length + digits.length - significant.length
  return `${text.startsWith('-') ? '-' : ''}${significant}e${power}`
}

declare global {
  /** In Node since version 21; the compiler's library does not know them yet. */
  interface JSON {
    rawJSON(text: string): object
    isRawJSON(value: unknown): boolean
  }
}
