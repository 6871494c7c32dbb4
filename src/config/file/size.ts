import { Lexer } from 'yaml'
import type { Mistake } from '../mistakes/mistake.ts'

/**
 * How large a config may be. A parser may need minutes for a file of a few kilobytes, and alerts wait during a reload. So
 * the words and marks of the text are counted before it is parsed: the time of parsing depends on their number. Parsing
 * the largest config that is allowed, of somewhat more than a thousand sources and a hundred sinks, takes about a second.
 */
export const configBytesMax = 1_048_576
const wordsMax = 100_000

/** Why the text is too large to be parsed, or undefined. */
export function sizeProblem(text: string): Mistake | undefined {
  // In UTF-8 no character takes less than a byte.
  if (text.length > configBytesMax) return tooManyBytes
  // A word has at least one character, and the lexer adds at most one mark without a character to it.
  if (text.length * 2 <= wordsMax) return undefined
  let words = 0
  for (const _ of new Lexer().lex(text)) {
    words += 1
    if (words > wordsMax) return tooManyWords
  }
  return undefined
}

export const tooManyBytes: Mistake = {
  path: '',
  message: `the file is larger than ${configBytesMax} bytes`,
}
const tooManyWords: Mistake = {
  path: '',
  line: 1,
  message: `the config holds more than ${wordsMax} words, marks and lines`,
}
