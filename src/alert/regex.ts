/**
 * Regular expressions whose time to match grows with the text alone: the pattern becomes a set of states that are
 * followed all at once, so nothing that a pattern or an upstream text holds can stall the bridge. The price is that back
 * references and looking around are refused. What a single character class means is left to the language's own RegExp
 * (with the flags `u` and `s`). Answers only whether, never where.
 */
export interface Program {
  readonly states: readonly State[]
  readonly start: number
}

export type Compiled =
  | { readonly ok: true; readonly program: Program }
  | { readonly ok: false; readonly problem: string }

export const patternCharsMax = 500
/** A counted repetition is written out, so it may be large in a short pattern. */
const statesMax = 1_000
/** Only so much of a text is looked at, as if it ended there. */
export const textCharsMax = 4_000

type State =
  | { readonly op: 'take'; readonly one: One; readonly next: number }
  | { readonly op: 'split'; next: number; readonly other: number }
  | { readonly op: 'at'; readonly where: Where; readonly next: number }
  | { readonly op: 'end' }

type One = (character: string) => boolean
type Where = 'start' | 'end' | 'edge' | 'inside'

type Node =
  | { readonly kind: 'one'; readonly one: One }
  | { readonly kind: 'at'; readonly where: Where }
  | { readonly kind: 'all'; readonly parts: readonly Node[] }
  | { readonly kind: 'any'; readonly choices: readonly Node[] }
  | { readonly kind: 'repeat'; readonly part: Node; readonly min: number; readonly max: number }

export function compileRegex(pattern: string): Compiled {
  if (pattern.length > patternCharsMax) return failed(`is longer than ${patternCharsMax} characters`)
  try {
    new RegExp(pattern, 'us')
  } catch (thrown) {
    const words = thrown instanceof Error ? thrown.message.replace(/^.*\/[a-z]+: /s, '') : ''
    return failed(`is no regular expression${words === '' ? '' : ` (${words})`}`)
  }
  const reader = new Reader(pattern)
  const node = reader.choices()
  if (reader.problem !== undefined) return failed(reader.problem)
  return build(node)
}

/** `*` is any run of characters, `?` is any one, `\` takes the next one as it is; all of the text must fit. */
export function compileGlob(glob: string): Compiled {
  if (glob.length > patternCharsMax) return failed(`is longer than ${patternCharsMax} characters`)
  const anything: Node = { kind: 'one', one: () => true }
  const parts: Node[] = []
  const characters = [...glob]
  for (let index = 0; index < characters.length; index += 1) {
    const character = characters[index] ?? ''
    if (character === '*') parts.push({ kind: 'repeat', part: anything, min: 0, max: Infinity })
    else if (character === '?') parts.push(anything)
    else if (character === '\\' && index + 1 < characters.length)
      parts.push(literal(characters[++index] ?? ''))
    else parts.push(literal(character))
  }
  return build({ kind: 'all', parts: [at('start'), ...parts, at('end')] })
}

/** Whether the pattern is found anywhere in the text. */
export function isFound({ states, start }: Program, text: string): boolean {
  const characters = [...text.slice(0, textCharsMax)]
  let active = new Set<number>()
  for (let index = 0; index <= characters.length; index += 1) {
    const open = reach(states, [...active, start], characters, index)
    if (open.has(-1)) return true
    const character = characters[index]
    if (character === undefined) return false
    active = new Set()
    for (const each of open) {
      const state = states[each]
      if (state?.op === 'take' && state.one(character)) active.add(state.next)
    }
  }
  return false
}

/** The states that `from` leads to without taking a character; -1 among them: the pattern is found. */
function reach(
  states: readonly State[],
  from: readonly number[],
  characters: readonly string[],
  index: number,
): Set<number> {
  const found = new Set<number>()
  const open = [...from]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue
    found.add(next)
    const state = states[next]
    if (state === undefined || state.op === 'end') return new Set([-1])
    if (state.op === 'split') open.push(state.next, state.other)
    else if (state.op === 'at' && holds(state.where, characters, index)) open.push(state.next)
  }
  return found
}

function holds(where: Where, characters: readonly string[], index: number): boolean {
  if (where === 'start') return index === 0
  if (where === 'end') return index === characters.length
  const edge = isWord(characters[index - 1]) !== isWord(characters[index])
  return edge === (where === 'edge')
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /^\w$/.test(character)
}

function failed(problem: string): Compiled {
  return { ok: false, problem }
}

function at(where: Where): Node {
  return { kind: 'at', where }
}

function literal(wanted: string): Node {
  return { kind: 'one', one: (character) => character === wanted }
}

/** Reads a pattern that RegExp has found to be well formed. */
class Reader {
  problem: string | undefined
  readonly #text: string
  #place = 0

  constructor(text: string) {
    this.#text = text
  }

  choices(): Node {
    const choices = [this.#sequence()]
    while (this.#takes('|')) choices.push(this.#sequence())
    return choices.length === 1 && choices[0] ? choices[0] : { kind: 'any', choices }
  }

  #sequence(): Node {
    const parts: Node[] = []
    while (this.#place < this.#text.length && !/[|)]/.test(this.#text[this.#place] ?? '')) {
      parts.push(this.#repeated(this.#atom()))
    }
    return { kind: 'all', parts }
  }

  #repeated(part: Node): Node {
    const match = /^(?:[*+?]|\{(\d+)(,(\d*))?\})\??/.exec(this.#text.slice(this.#place))
    if (!match) return part
    this.#place += match[0].length
    const [word, low, comma, high] = match
    if (low === undefined)
      return { kind: 'repeat', part, min: word[0] === '+' ? 1 : 0, max: word[0] === '?' ? 1 : Infinity }
    const min = Number(low)
    return { kind: 'repeat', part, min, max: comma === undefined ? min : high ? Number(high) : Infinity }
  }

  #atom(): Node {
    if (this.#takes('(')) return this.#group()
    if (this.#takes('^')) return at('start')
    if (this.#takes('$')) return at('end')
    const rest = this.#text.slice(this.#place)
    const token =
      /^(?:\[(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\c[A-Za-z]|\\.|.)/su.exec(
        rest,
      )?.[0] ?? rest
    this.#place += token.length
    if (token === '\\b') return at('edge')
    if (token === '\\B') return at('inside')
    if (/^\\[1-9k]/.test(token)) this.#refuse('refers back to a group, which is not possible here')
    return { kind: 'one', one: oneOf(token) }
  }

  #group(): Node {
    const opening = /^\?(?::|<[^=!>][^>]*>)/.exec(this.#text.slice(this.#place))
    if (opening) this.#place += opening[0].length
    else if (this.#text[this.#place] === '?')
      this.#refuse('looks around or sets flags in a group, which is not possible here')
    const inner = this.choices()
    this.#takes(')')
    return inner
  }

  #takes(character: string): boolean {
    if (this.#text[this.#place] !== character) return false
    this.#place += 1
    return true
  }

  #refuse(problem: string): void {
    this.problem ??= problem
    this.#place = this.#text.length
  }
}

function oneOf(token: string): One {
  if ([...token].length === 1 && token !== '.') return (character) => character === token
  let own: RegExp
  try {
    own = new RegExp(`^${token}$`, 'us')
  } catch {
    // Only after a refusal.
    return () => false
  }
  return (character) => own.test(character)
}

/** From the end to the front, so that every state knows what follows it. */
function build(node: Node): Compiled {
  const states: State[] = [{ op: 'end' }]
  const add = (state: State) => (states.length > statesMax ? 0 : states.push(state) - 1)
  const place = (each: Node, next: number): number => {
    if (states.length > statesMax) return 0
    switch (each.kind) {
      case 'one':
        return add({ op: 'take', one: each.one, next })
      case 'at':
        return add({ op: 'at', where: each.where, next })
      case 'all':
        return each.parts.reduceRight((follows, part) => place(part, follows), next)
      case 'any':
        return each.choices
          .map((choice) => place(choice, next))
          .reduceRight((other, choice) => add({ op: 'split', next: choice, other }))
      case 'repeat':
        return placeRepeat(each, next)
    }
  }
  const placeRepeat = ({ part, min, max }: Extract<Node, { kind: 'repeat' }>, next: number): number => {
    let first = next
    if (max === Infinity) {
      const loop = { op: 'split' as const, next: 0, other: next }
      first = add(loop)
      loop.next = place(part, first)
    } else {
      for (let count = min; count < max && states.length <= statesMax; count += 1)
        first = add({ op: 'split', next: place(part, first), other: next })
    }
    for (let count = 0; count < min && states.length <= statesMax; count += 1) first = place(part, first)
    return first
  }
  const start = place(node, 0)
  if (states.length > statesMax) return failed('repeats too much: written out, it would be too long')
  return { ok: true, program: { states, start } }
}
