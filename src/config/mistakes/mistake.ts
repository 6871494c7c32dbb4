/** Something in the config that a person must mend, or (as a warning) should check. It never contains a secret. */
export interface Mistake {
  /** `sinks.ops.to[1]`; empty for the file as a whole. */
  readonly path: string
  /** Counted from 1; absent when the file could not be read at all. */
  readonly line?: number
  readonly column?: number
  /** What is there now, for people. */
  readonly found?: string
  /** What was expected instead. */
  readonly message: string
  readonly remedy?: string
}

/** More at once help nobody, and a generated file could have a hundred thousand. */
export const mistakesMax = 100

/** `config.yaml:12: sinks.ops.url: found "ftp://x": expected …`, in one line. */
export function formatMistake(file: string, mistake: Mistake): string {
  const { path, line, found, message, remedy } = mistake
  const place = line === undefined ? file : `${file}:${line}`
  const parts = [place, path, found === undefined ? '' : `found ${found}`, message].filter(
    (part) => part !== '',
  )
  return printable(`${parts.join(': ')}${remedy === undefined ? '' : ` (${remedy})`}`)
}

/** One line, whatever a key or value contains: control characters and bidi marks could change what a terminal shows. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

export type Path = readonly PropertyKey[]

export function formatPath(path: Path): string {
  return path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index > 0 ? '.' : ''}${String(key)}`))
    .join('')
}

/** One word of small letters, capital letters and digits, at least so long: many secrets look so, no key or name does. */
export function mixesAll(text: string, charsMin: number): boolean {
  return text.length >= charsMin && [/^[\w+/=-]+$/, /[a-z]/, /[A-Z]/, /\d/].every((form) => form.test(text))
}

/** A path for people, cut and masked: a key may be as long as the file, or may be a secret whose colon is missing. */
export function shownPath(path: Path): string {
  const text = formatPath(path).replace(/[\w+/=-]+/g, (word) => (mixesAll(word, 12) ? '[redacted]' : word))
  return text.length > pathCharsMax ? `${text.slice(0, pathCharsMax)}…` : text
}

const pathCharsMax = 300

/** By line, then column; mistakes without a line come first. */
export function byLocation(a: Mistake, b: Mistake): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0)
}
