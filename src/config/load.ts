import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Document, isMap, isSeq, LineCounter, parseDocument, type YAMLError } from 'yaml'
import { errorCode } from '../lib/errors.ts'
import { readSmallFile } from '../lib/small-file.ts'
import { checkAcross } from './check.ts'
import type { Env } from './env.ts'
import { explainComplaints, explainIssues } from './explain.ts'
import { deepFreeze } from './freeze.ts'
import { byPlace, type Mistake, mistakesMax } from './mistake.ts'
import { readTree } from './read.ts'
import { describeReadError } from './read-error.ts'
import { type Config, configSchema } from './schema.ts'
import { configBytesMax, sizeProblem, tooManyBytes } from './size.ts'
import { environmentWarnings, warningsOf } from './warnings.ts'
import { describeYamlError, startOf } from './yaml-error.ts'

/**
 * The only way from a file to a `Config`: read, parse, fill, check, freeze. It never throws for what stands in the file,
 * ends soon whatever its size, and tells all mistakes at once (as many as a person can use); no mistake or warning carries
 * a secret's value.
 */
export type LoadedConfig =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Mistake[] }
  | { readonly ok: false; readonly mistakes: readonly Mistake[] }

export function loadConfig(path: string, env: Env): LoadedConfig {
  const file = readText(path)
  return file.ok ? parseConfig(file.text, { env, folder: dirname(resolve(path)) }) : failed([file.mistake])
}

/** The config in `text`; relative paths of `…File` start from `folder`. */
export function parseConfig(text: string, options: { env: Env; folder: string }): LoadedConfig {
  const oversize = sizeProblem(text)
  if (oversize !== undefined) return failed([oversize])
  const lines = new LineCounter()
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    // The reader looks for keys that stand twice: the parser compares each with each.
    uniqueKeys: false,
    lineCounter: lines,
    // Pretty errors quote the line, and the line may hold a secret.
    prettyErrors: false,
    // Below this level the parser keeps a second document to itself.
    logLevel: 'error',
  })
  // After an error the parser guesses, and what it complains of next is its own doing.
  const [breaking] = document.errors
  if (breaking !== undefined) return failed([syntaxMistake(breaking, document, lines)])
  if (!isMap(document.contents)) {
    const found = isSeq(document.contents) ? 'a list' : document.contents === null ? 'nothing' : 'a text'
    return failed([
      { path: '', line: 1, found, message: 'expected a mapping with sources, sinks and routes' },
    ])
  }
  const reading = readTree(configSchema, { document, lines, ...options })
  if (reading.tooLarge) return failed(reading.mistakes)
  const parsed = configSchema.safeParse(reading.value)
  const mistakes = [
    ...reading.mistakes,
    ...explainIssues(parsed.error?.issues ?? [], configSchema, reading),
    ...explainComplaints(checkAcross(reading.value), configSchema, reading),
  ]
  if (!parsed.success || mistakes.length > 0) return failed(mistakes)
  const complaints = explainComplaints(warningsOf(parsed.data, reading.value), configSchema, reading)
  const warnings = [...environmentWarnings(options.env), ...complaints]
  return { ok: true, config: deepFreeze(parsed.data), warnings }
}

function failed(mistakes: readonly Mistake[]): LoadedConfig {
  const told = [...mistakes].sort(byPlace).slice(0, mistakesMax)
  const more = { path: '', message: `there are more mistakes than these ${mistakesMax}` }
  return { ok: false, mistakes: mistakes.length > mistakesMax ? [...told, more] : told }
}

function readText(path: string): { ok: true; text: string } | { ok: false; mistake: Mistake } {
  const refuse = (message: string) => ({ ok: false, mistake: { path: '', message } }) as const
  try {
    const stat = statSync(path)
    if (stat.isDirectory()) return refuse('this is a folder, not a config file')
    return { ok: true, text: readSmallFile(path, configBytesMax) }
  } catch (thrown) {
    if (errorCode(thrown) === 'EFBIG') return { ok: false, mistake: tooManyBytes }
    return refuse(`the file cannot be read: ${describeReadError(thrown)}`)
  }
}

function syntaxMistake(error: YAMLError, document: Document.Parsed, lines: LineCounter): Mistake {
  const { line, col } = lines.linePos(startOf(error, document))
  return { path: '', line: Math.max(1, line), column: Math.max(1, col), ...describeYamlError(error) }
}
