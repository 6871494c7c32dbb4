import { statSync } from 'node:fs'
import { type Document, isMap, isSeq, LineCounter, parseDocument, type YAMLError } from 'yaml'
import { errorCode } from '../../lib/errors.ts'
import { readSmallFile } from '../../lib/small-file.ts'
import { byLocation, type Mistake, mistakesMax } from '../mistakes/mistake.ts'
import { readPipeOrFile } from './pipe-file.ts'
import { describeReadError } from './read-error.ts'
import { configBytesMax, sizeProblem, tooManyBytes } from './size.ts'
import { describeYamlError, startOf } from './yaml-error.ts'

/** Reads a file and parses it to a YAML tree: the first step of reading a config or a part of it. */
type YamlTree =
  | { readonly ok: true; readonly document: Document; readonly lines: LineCounter }
  | { readonly ok: false; readonly mistakes: readonly Mistake[] }

export function parseYaml(text: string): YamlTree {
  const oversize = sizeProblem(text)
  if (oversize !== undefined) return failed([oversize])
  const lines = new LineCounter()
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    // `read.ts` finds keys that are there twice. The parser is slow at it: it compares each key with all others.
    uniqueKeys: false,
    lineCounter: lines,
    // Pretty errors quote the line, and the line may contain a secret.
    prettyErrors: false,
    // With `silent` the parser would ignore a second document without an error.
    logLevel: 'error',
  })
  // After the first error the parser guesses, so its further errors mean little.
  const [breaking] = document.errors
  if (breaking !== undefined) return failed([syntaxMistake(breaking, document, lines)])
  if (!isMap(document.contents)) {
    const found = isSeq(document.contents) ? 'a list' : document.contents === null ? 'nothing' : 'a text'
    return failed([
      { path: '', line: 1, found, message: 'expected a mapping with sources, sinks and routes' },
    ])
  }
  return { ok: true, document, lines }
}

/** The mistakes to report: in the order of the file, and no more than a person can use. */
export function sortedMistakes(mistakes: readonly Mistake[]): readonly Mistake[] {
  const first = [...mistakes].sort(byLocation).slice(0, mistakesMax)
  const more = { path: '', message: `there are more mistakes than these ${mistakesMax}` }
  return mistakes.length > mistakesMax ? [...first, more] : first
}

/** `again`: for a reload. It reads no pipe: that was read at the start, and waiting for it would block the bridge. */
export function readConfigText(
  path: string,
  { again = false } = {},
): { ok: true; text: string } | { ok: false; mistake: Mistake } {
  const refuse = (message: string) => ({ ok: false, mistake: { path: '', message } }) as const
  try {
    const stat = statSync(path)
    if (stat.isDirectory()) return refuse('this is a folder, not a config file')
    return { ok: true, text: (again ? readSmallFile : readPipeOrFile)(path, configBytesMax) }
  } catch (thrown) {
    if (errorCode(thrown) === 'EFBIG') return { ok: false, mistake: tooManyBytes }
    return refuse(`the file cannot be read: ${describeReadError(thrown)}`)
  }
}

function syntaxMistake(error: YAMLError, document: Document.Parsed, lines: LineCounter): Mistake {
  const { line, col } = lines.linePos(startOf(error, document))
  return { path: '', line: Math.max(1, line), column: Math.max(1, col), ...describeYamlError(error) }
}

function failed(mistakes: readonly Mistake[]): YamlTree {
  return { ok: false, mistakes }
}
