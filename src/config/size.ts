import { Lexer } from 'yaml'
import type { Mistake } from './mistake.ts'

/**
 * How large a config may be. A file of a few kilobytes can hold what a parser needs minutes for, and a reload is read
 * while alerts wait, so the text is measured before it is parsed: the cost of parsing goes with the number of its words and
 * marks, whatever they mean. The largest config that fits takes a few hundred milliseconds.
 */
export const configBytesMax = 1_048_576
const wordsMax = 60_000

/** What keeps a text from being parsed. */
export function sizeProblem(text: string): Mistake | undefined {
  // In UTF-8 no character takes less than a byte.
  if (text.length > configBytesMax) return tooManyBytes
  // No word takes less than a character, and the mark that the lexer sets before some takes none.
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
