/**
 * Removes secrets from what others wrote. A server that got a secret may repeat it in any encoding: as it is, in JSON, in a
 * page, in an address, in base64, in UTF-16, broken over lines, or in several of these at once. So the text is decoded
 * layer by layer, and where a layer contains a secret, its place in the original text is removed.
 */
export function scrub(given: string, secrets: Iterable<string>, { cutOff = false } = {}): string {
  // Half an encoded character at the end, where the text was cut off, is of no use.
  const text = cutOff ? given.replace(halfEncoded, '') : given
  if (text === '') return text
  const needles = new Set<string>()
  const spans: Span[] = []
  for (const secret of secrets) {
    if (secret.length < secretCharsMin) continue
    spans.push(...placesOf(secret, text).map((from) => ({ from, to: from + secret.length })))
    for (const form of formsOf(secret)) if (form.length >= secretCharsMin) needles.add(form)
  }
  for (const layer of layersOf(text)) {
    const { characters, from, to } = folded(layer)
    for (const needle of needles) {
      for (const at of placesOf(needle, characters))
        spans.push({ from: from[at] ?? 0, to: to[at + needle.length - 1] ?? text.length })
      for (const { at, length } of beginningsOf(needle, characters))
        spans.push({ from: from[at] ?? 0, to: to[at + length - 1] ?? text.length })
    }
  }
  return without(text, spans)
}

/** Shorter texts would remove parts of ordinary words. */
export const secretCharsMin = 6
/** Of a secret that is cut off, a beginning of this length or more is removed too. */
const begunCharsMin = 8
/** JSON in a page in an address: more encodings within each other are not expected. */
const layersMax = 3

/** A range of the original text. */
interface Span {
  readonly from: number
  readonly to: number
}

/** A decoded text, and the range of the original text of each of its characters. */
interface Layer {
  readonly characters: string
  readonly from: readonly number[]
  readonly to: readonly number[]
}

/** What to look for: the secret decoded in every layer, and as others encode it; each folded. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret, 'utf8')
  const plain = [
    ...layersOf(secret).map(({ characters }) => characters),
    secret.replaceAll(' ', '+'),
    bytes.toString('hex'),
    ...[0, 1, 2].map((shift) => base64Within(bytes, shift)),
  ]
  return plain.map((form) => folded(asWritten(form)).characters)
}

/**
 * The base64 characters that depend on these bytes alone, where the bytes are part of a longer text and begin `shift` bytes
 * after a group of three.
 */
function base64Within(bytes: Buffer, shift: number): string {
  const whole = Buffer.concat([Buffer.alloc(shift), bytes])
  const [first, end] = [Math.ceil((shift * 8) / 6), Math.floor((whole.length * 8) / 6)]
  return whole.toString('base64').slice(first, end)
}

/** The original text, then the text decoded once, and so on. */
function layersOf(text: string): Layer[] {
  const layers = [asWritten(text)]
  for (let next = decoded(layers[0]); next && layers.length <= layersMax; next = decoded(next))
    layers.push(next)
  return layers
}

function asWritten(text: string): Layer {
  const from = Array.from({ length: text.length }, (_, index) => index)
  return { characters: text, from, to: from.map((index) => index + 1) }
}

const encoded =
  /(?:%[\da-f]{2})+|\\u\{([\da-f]{1,6})\}|\\[ux]([\da-f]{4}|(?<=x)[\da-f]{2})|\\(.)|&#(\d{1,7});|&#x([\da-f]{1,6});|&(amp|lt|gt|quot|apos);/gis
const halfEncoded = /(?:%[\da-f]?|\\(?:u[\da-f]{0,3}|x[\da-f]?)?|&(?:#x?)?\w{0,6})$/i
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Undefined where nothing is encoded. */
function decoded(layer: Layer | undefined): Layer | undefined {
  if (layer === undefined) return undefined
  const pieces: string[] = []
  const [from, to]: [number[], number[]] = [[], []]
  const take = (piece: string, start: number, end: number) => {
    pieces.push(piece)
    for (let index = 0; index < piece.length; index += 1) {
      from.push(layer.from[start] ?? 0)
      to.push(layer.to[end - 1] ?? 0)
    }
  }
  let taken = 0
  const takeUntil = (end: number) => {
    for (; taken < end; taken += 1) take(layer.characters[taken] ?? '', taken, taken + 1)
  }
  for (const match of layer.characters.matchAll(encoded)) {
    const [whole, braced, hex, escaped, decimal, hexEntity, name] = match
    takeUntil(match.index)
    let at = match.index
    for (const [piece, length] of whole.startsWith('%') ? percentPieces(whole) : []) {
      take(piece, at, at + length)
      at += length
    }
    const code = braced ?? hex ?? hexEntity
    if (code !== undefined) take(character(Number.parseInt(code, 16)), at, at + whole.length)
    else if (decimal !== undefined) take(character(Number(decimal)), at, at + whole.length)
    else if (name !== undefined) take(entities[name.toLowerCase()] ?? '', at, at + whole.length)
    else if (escaped !== undefined) take(/[bfnrt]/.test(escaped) ? ' ' : escaped, at, at + whole.length)
    taken = match.index + whole.length
  }
  if (taken === 0) return undefined
  takeUntil(layer.characters.length)
  return { characters: pieces.join(''), from, to }
}

/** `%d9%81%2f`: its characters, each with the length of its encoded form. */
function percentPieces(run: string): [piece: string, length: number][] {
  const pieces: [string, number][] = []
  for (let at = 0; at < run.length; ) {
    const lead = Number.parseInt(run.slice(at + 1, at + 3), 16)
    const bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
    const piece = run.slice(at, at + bytes * 3)
    pieces.push([decodedPercent(piece), piece.length])
    at += piece.length
  }
  return pieces
}

function decodedPercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return '\ufffd'
  }
}

function character(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd'
}

/** Characters that are invisible, or that break a line. */
const unseen = /[\s\p{Cc}\p{Cf}\u2028\u2029]/u

/** Without invisible characters, in small letters, and base64 of both alphabets alike. */
function folded({ characters, from, to }: Layer): Layer {
  const kept: string[] = []
  const keptFrom: number[] = []
  const keptTo: number[] = []
  for (let index = 0; index < characters.length; index += 1) {
    const given = characters[index] ?? ''
    if (unseen.test(given)) continue
    const small = given.toLowerCase()
    kept.push(given === '-' ? '+' : given === '_' ? '/' : small.length === 1 ? small : given)
    keptFrom.push(from[index] ?? 0)
    keptTo.push(to[index] ?? 0)
  }
  return { characters: kept.join(''), from: keptFrom, to: keptTo }
}

function placesOf(needle: string, text: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + needle.length))
    places.push(at)
  return places
}

/** Where the needle begins and is cut off: by a mark for that, or by the end of the text. */
function beginningsOf(needle: string, text: string): { at: number; length: number }[] {
  return placesOf(needle.slice(0, begunCharsMin), text).flatMap((at) => {
    let length = begunCharsMin
    while (length < needle.length && needle[length] === text[at + length]) length += 1
    return length < needle.length && cutOffMark.test(text.slice(at + length, at + length + 3))
      ? [{ at, length }]
      : []
  })
}

const cutOffMark = /^(?:$|…|\.\.|\*\*|\[\.)/

function without(text: string, spans: readonly Span[]): string {
  let left = ''
  let done = 0
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from || b.to - a.to)) {
    if (from >= done) left += `${text.slice(done, from)}[redacted]`
    done = Math.max(done, to)
  }
  return left + text.slice(done)
}
