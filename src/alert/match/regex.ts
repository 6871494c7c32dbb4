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
 * What counted repetitions may come to when they are written out, and classes when they are weighed (each): refused before the time and
 * memory to compile it are spent. So compiling takes at most about 20 microseconds a character that is counted.
 */
const writtenOutMax = 2_000
/** Only so much of a text is looked at, as if it ended there. */
export const textCharsMax = 2_000

export function compileRegex(pattern: string): Compiled {
  return compile(pattern, asRe2(pattern))
}

/**
 * What a pattern counts where several are limited together: its characters, or about as many as it has once its counted
 * repetitions are written out, and the weight of its classes. To compile it is not needed for that.
 */
export function patternSize(pattern: string): number {
  if (pattern.length > patternCharsMax) return pattern.length
  const expression = asRe2(pattern)
  return Math.max(pattern.length, writtenOut(expression)) + classWeight(expression)
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
  if (classWeight(expression) > writtenOutMax) return failed(tooManyClasses)
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
const tooManyClasses = 'has too many classes of Unicode, or too wide ones where case is ignored'

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

/** What a class of Unicode counts, such as `\\pL`: to compile it takes as long as about so many characters. */
const classOfUnicode = 15
/** Of a range, where case is ignored: RE2JS looks up the other case of each code point in it, up to the last that has one. */
const foldedPerCharacter = 250
const lastFolded = 0x1e943

/** As how many more characters classes count, since they take so much longer to compile: once each, however often they are repeated. */
function classWeight(pattern: string): number {
  const classes = pattern.match(/\\p/gi)?.length ?? 0
  if (!/\(\?[a-z-]*i/i.test(pattern)) return classes * classOfUnicode
  // Whatever stands around a hyphen, also outside of a class: rather one too many.
  const ranges = pattern.matchAll(
    /(?<=(\\x\{[\da-f]+\}|\\x[\da-f]{2}|.))-(?=(\\x\{[\da-f]+\}|\\x[\da-f]{2}|\\?.))/gisu,
  )
  const folded = [...ranges].reduce((sum, [, low = '', high = '']) => {
    return sum + Math.max(0, Math.min(pointOf(high), lastFolded) - pointOf(low))
  }, 0)
  return classes * classOfUnicode + Math.ceil(folded / foldedPerCharacter)
}

function pointOf(end: string): number {
  const written = /^\\x\{?([\da-f]+)/i.exec(end)?.[1]
  return written === undefined
    ? (end.codePointAt(end.length > 1 && end.startsWith('\\') ? 1 : 0) ?? 0)
    : parseInt(written, 16)
}

function add(level: { sum: number; last: number }, size: number): void {
  level.sum += size
  level.last = size
}
