import type { Comparable, ComparableResult, Emitter } from 'liquidjs'
import { load } from '../../lib/packages.ts'
import { SinkError } from '../transport/fault.ts'
import { type Escaping, escaped, plain } from './escaping.ts'

/**
 * What a template writes, in two kinds that are kept apart: its own text, which is written unchanged, and values, which
 * are escaped for the place where they are written. Captured text keeps both apart until it is written, so that every
 * value is escaped exactly once.
 */
type Piece = string | OutputValue

/** Only configs with templates load it. */
export const liquid = () => load('liquidjs') as typeof import('liquidjs')

/** What `{{ … }}` made. */
export class OutputValue {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = liquid().toValue(value)
  }
}

export const renderedCharsMax = 4_000_000

/**
 * What `{% capture %}` or `| json` wrote. To conditions and filters it is a text; a template reads nothing of it but
 * `size`.
 */
export class Fragment implements Comparable {
  readonly size: number
  readonly #pieces: readonly Piece[]

  constructor(pieces: readonly Piece[]) {
    this.#pieces = pieces
    this.size = pieces.reduce((sum, piece) => sum + sizeOf(piece), 0)
  }

  pieces(): readonly Piece[] {
    return this.#pieces
  }

  toString(): string {
    return this.#pieces.map((piece) => (typeof piece === 'string' ? piece : textOf(piece.value))).join('')
  }

  equals(other: unknown): ComparableResult {
    // `empty` and `blank` know themselves what equals them.
    if (isComparable(other) && !(other instanceof Fragment)) return other.equals(this.toString())
    return this.toString() === asPlain(other)
  }

  gt(other: unknown): boolean {
    return this.toString() > textOf(other)
  }

  geq(other: unknown): boolean {
    return this.toString() >= textOf(other)
  }

  lt(other: unknown): boolean {
    return this.toString() < textOf(other)
  }

  leq(other: unknown): boolean {
    return this.toString() <= textOf(other)
  }

  /** What `contains` asks. */
  indexOf(other: unknown): number {
    return this.toString().indexOf(textOf(other))
  }
}

/** What `| raw` made of a fragment. */
export class Verbatim {
  readonly fragment: Fragment

  constructor(fragment: Fragment) {
    this.fragment = fragment
  }
}

/** Fragments as the text that they are; everything else as it is. */
export function asPlain(value: unknown): unknown {
  if (value instanceof Verbatim) return value.fragment.toString()
  return value instanceof Fragment ? value.toString() : value
}

/** The text of a body or an address. */
export class Writer implements Emitter {
  buffer = ''
  readonly #escaping: Escaping
  readonly #place = new JsonPosition()

  constructor(escaping: Escaping) {
    this.#escaping = escaping
  }

  write(written: unknown): void {
    if (written instanceof OutputValue) this.#writeValue(written.value)
    else if (written instanceof Verbatim) this.#writePieces(written.fragment)
    else this.#writeOwn(plain(written))
  }

  #writeValue(value: unknown): void {
    const fragment = value instanceof Verbatim ? value.fragment : value
    if (fragment instanceof Fragment && !this.#place.inString) this.#writePieces(fragment)
    else this.#add(escaped(this.#escaping, asPlain(fragment), this.#place.inString))
  }

  #writePieces(fragment: Fragment): void {
    for (const piece of fragment.pieces()) this.write(piece)
  }

  #writeOwn(text: string): void {
    if (this.#escaping === 'json') this.#place.follow(text)
    this.#add(text)
  }

  #add(text: string): void {
    this.buffer += text
    refuseBeyond(this.buffer.length)
  }
}

/** The text between `{% capture %}` and its end. */
export class CaptureWriter implements Emitter {
  buffer = ''
  readonly #pieces: Piece[] = []
  #weight = 0

  write(written: unknown): void {
    if (written instanceof OutputValue) this.#keep(written)
    else if (written instanceof Verbatim) for (const piece of written.fragment.pieces()) this.#keep(piece)
    else this.#keep(plain(written))
  }

  captured(): Fragment {
    return new Fragment(this.#pieces)
  }

  /** An empty value counts as one character: otherwise captures of captures could store values without limit. */
  #keep(piece: Piece): void {
    if (piece === '') return
    this.#weight += 1 + sizeOf(piece)
    refuseBeyond(this.#weight)
    this.#pieces.push(piece)
  }
}

function refuseBeyond(count: number): void {
  if (count > renderedCharsMax)
    throw new SinkError('unrenderable', `the template made more than ${renderedCharsMax} characters`)
}

function sizeOf(piece: Piece): number {
  if (typeof piece === 'string') return piece.length
  return piece.value instanceof Fragment ? piece.value.size : textOf(piece.value).length
}

function textOf(value: unknown): string {
  return plain(asPlain(liquid().toValue(value)))
}

function isComparable(value: unknown): value is Comparable {
  return (
    typeof value === 'object' && value !== null && 'equals' in value && typeof value.equals === 'function'
  )
}

/** Whether the JSON that was written so far ends within a string, so that what follows is known to be text of it. */
class JsonPosition {
  inString = false
  #isEscaped = false

  /** Reads on over text that the template wrote itself. What is no JSON is read as well as it goes. */
  follow(text: string): void {
    for (let index = 0; index < text.length; index += 1) {
      const character = text[index]
      if (this.#isEscaped) this.#isEscaped = false
      else if (character === '"') this.inString = !this.inString
      else if (character === '\\') this.#isEscaped = this.inString
    }
  }
}
