import { RE2JS } from 're2js'

/**
 * Regular expressions in RE2's syntax, whose time to match is at most the size of the pattern times the length of the text,
 * and both are bounded: one match takes at most about 0.1 s. (Measured: 0.07 s of processor time, on a shared 2-core machine,
 * was the worst of 114 random families of patterns, each as large as is accepted, on five texts of `textCharsMax`: nested and
 * counted repetitions, alternations, classes of Unicode, ignoring case.) Who compares with many patterns does so in turns
 * (`turns.ts`). The price is that references back and looking around are refused. A dot matches
 * line breaks too; `\w`, `\d`, `\s` and `\b` know ASCII only, `\pL` and its like all of Unicode. Answers only whether,
 * never where.
 */
export type Compiled =
  | { readonly ok: true; readonly program: Program }
  | { readonly ok: false; readonly problem: string }

export type Program = Pick<RE2JS, 'matcher'>

const patternCharsMax = 500
/** Instructions of the compiled program: what `patternCharsMax` letters need, and some. */
const programSizeMax = 600
/**
 * What counted repetitions may come to when they are written out: refused before the time and memory to compile it are
 * spent.
 */
const writtenOutMax = 2_000
/** Only so much of a text is looked at, as if it ended there. */
export const textCharsMax = 2_000

export function compileRegex(pattern: string): Compiled {
  return compile(pattern, asRe2(pattern))
}

/**
 * What a pattern counts where several are limited together: its characters, or about as many as it has once its counted
 * repetitions are written out. To compile it is not needed for that.
 */
export function patternSize(pattern: string): number {
  const own = pattern.length > patternCharsMax ? 0 : writtenOut(asRe2(pattern))
  return Math.max(pattern.length, own)
}

/** `*` is any run of characters, `?` is any one, `\` takes the next one as it is; all of the text must fit. */
export function compileGlob(glob: string): Compiled {
  const parts = glob.match(/\\?./gsu) ?? []
  const expressions = parts.map((part) => {
    if (part === '*') return '.*'
    if (part === '?') return '.'
    return RE2JS.quote(part.length > 1 && part.startsWith('\\') ? part.slice(1) : part)
  })
  return compile(glob, `\\A${expressions.join('')}\\z`)
}

/**
 * Whether the pattern is found anywhere in the text. Not by `test`: its automaton is built while it matches, which takes five to
 * ten times longer at its worst, and each pattern would keep up to 8 MB of it.
 */
export function isFound(program: Program, text: string): boolean {
  return program.matcher(text.slice(0, textCharsMax)).find()
}

function compile(written: string, expression: string): Compiled {
  if (written.length > patternCharsMax) return failed(`is longer than ${patternCharsMax} characters`)
  if (writtenOut(expression) > writtenOutMax) return failed(tooLarge)
  try {
    const program = RE2JS.compile(expression, RE2JS.DOTALL)
    return program.programSize() > programSizeMax ? failed(tooLarge) : { ok: true, program }
  } catch (error) {
    const words =
      error instanceof Error ? error.message.replace(/^error parsing regexp: /, '').replace('`(?s)', '`') : ''
    return failed(
      `cannot be used: ${words} (the syntax is RE2's: no references back, no looking around, repetitions up to 1000)`,
    )
  }
}

const tooLarge = 'repeats too much: written out, it would be too long'

function failed(problem: string): Compiled {
  return { ok: false, problem }
}

/**
 * What JavaScript writes its own way: code points (`\u06a9`, `\u{1f600}`, a pair of halves) are `\x{6a9}` to RE2, and
 * `\p{Script=Arabic}` is `\p{Arabic}`.
 */
function asRe2(pattern: string): string {
  return pattern.replace(
    /\\u\{([\da-f]{1,6})\}|\\u(d[89ab][\da-f]{2})\\u(d[c-f][\da-f]{2})|\\u([\da-f]{4})|\\(p)\{(?:script|sc|general_category|gc)=(\w+)\}|\\./gis,
    (whole, code?: string, high?: string, low?: string, unit?: string, kind?: string, name?: string) => {
      if (kind !== undefined) return `\\${kind}{${name}}`
      if (high !== undefined && low !== undefined)
        return `\\x{${String.fromCharCode(parseInt(high, 16), parseInt(low, 16)).codePointAt(0)?.toString(16)}}`
      const point = code ?? unit
      return point === undefined ? whole : `\\x{${point}}`
    },
  )
}

/** About how many characters the pattern has once its counted repetitions are written out. */
function writtenOut(pattern: string): number {
  const open: { sum: number; last: number }[] = [{ sum: 0, last: 0 }]
  for (const [token, low, high] of pattern.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|./gsu)) {
    const level = open.at(-1)
    if (token === '(') open.push({ sum: 0, last: 0 })
    else if (token === ')' && open.length > 1) {
      const group = open.pop()
      const outer = open.at(-1)
      if (group && outer) add(outer, group.sum + 2)
    } else if (level && low !== undefined)
      add(level, level.last * (Math.max(Number(low), Number(high ?? 0), 1) - 1))
    else if (level) add(level, 1)
  }
  return open.reduce((sum, level) => sum + level.sum, 0)
}

function add(level: { sum: number; last: number }, size: number): void {
  level.sum += size
  level.last = size
}
