import type * as z from 'zod'
import { property } from '../../alert/json/json.ts'
import { locationOf } from '../file/locations.ts'
import type { ReadResult } from '../file/read.ts'
import { fileSuffix, keysOf } from '../file/secret-file.ts'
import { childOf, hasFileKey, metaOf, type Schema, shapeOf } from '../outline.ts'
import { describeFound } from './describe-value.ts'
import { byLocation, formatPath, type Mistake, mistakesMax, type Path, shownPath } from './mistake.ts'
import { nearest } from './nearest.ts'

/**
 * Turns zod's issues into mistakes that a person can mend: the path and line, what was found there (never a secret), what
 * was expected, and the nearest right word. An issue is dropped when `read.ts` has already reported a mistake there.
 */
type Issue = z.core.$ZodIssue

/** The result of a check outside the schema. */
export interface Complaint {
  readonly path: Path
  readonly message: string
  readonly remedy?: string | undefined
  /** The value found is not shown, since it is not the mistake: the key is, or something elsewhere. */
  readonly bare?: boolean
}

export function explainIssues(issues: readonly Issue[], schema: Schema, reading: ReadResult): Mistake[] {
  const complaints = issues
    .slice(0, mistakesMax + 1)
    .flatMap((issue) => complaintsOf(issue, schema, reading.value))
  // A mistake in a key is reported once, without a second one for its missing value.
  const keys = new Set(complaints.filter(({ bare }) => bare).map(({ path }) => formatPath(path)))
  const rest = complaints.filter(({ path, bare }) => bare || !keys.has(formatPath(path)))
  return explainComplaints(rest, schema, reading)
}

export function explainComplaints(
  complaints: readonly Complaint[],
  schema: Schema,
  reading: ReadResult,
): Mistake[] {
  const unsettled = complaints.filter(({ path }) => !isSettled(path, reading.settled))
  return unsettled.map((complaint) => toMistake(complaint, schema, reading)).sort(byLocation)
}

function toMistake({ path, message, remedy, bare }: Complaint, schema: Schema, reading: ReadResult): Mistake {
  const expectsMapping = message === expectations['object']
  return {
    path: shownPath(path),
    ...locationOf(reading.locations, path),
    ...(bare ? {} : { found: describeFound(path, schema, reading, { quote: !expectsMapping }) }),
    message,
    ...(remedy === undefined ? {} : { remedy }),
  }
}

function isSettled(path: Path, settled: ReadonlySet<string>): boolean {
  return (
    path.some((_, index) => settled.has(formatPath(path.slice(0, index + 1)))) ||
    settled.has(formatPath(path))
  )
}

function complaintsOf(issue: Issue, schema: Schema, root: unknown): Complaint[] {
  const path = issue.path
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.slice(0, mistakesMax + 1).map((key) => unknownKey([...path, key], schema, root))
    case 'invalid_key':
      return [{ path, message: issue.issues[0]?.message ?? 'this key is not allowed here', bare: true }]
    case 'invalid_union':
      return unionComplaints(issue, schema, root)
    case 'invalid_type':
      return [typeComplaint(issue, schema, root)]
    case 'invalid_value':
      return [choiceComplaint(path, issue.values.map(String), valueAt(root, path))]
    case 'too_small':
    case 'too_big':
      return [{ path, message: sizeMessage(issue) }]
    default:
      return [{ path, message: issue.message, remedy: remedyIn(issue) }]
  }
}

function unknownKey(path: Path, schema: Schema, root: unknown): Complaint {
  const key = String(path.at(-1))
  const parent = path.slice(0, -1)
  const colon = key.indexOf(':')
  // In braces, YAML reads `token:abc` as one key, and the text after the colon may be a secret.
  if (colon > 0)
    return { path: [...parent, key.slice(0, colon)], message: 'expected a space after the colon', bare: true }
  const around = schemaAt(schema, root, parent)
  const shape = around && shapeOf(around, valueAt(root, parent))
  const known = shape === undefined ? [] : keysOf(shape)
  const near = nearest(key, known)
  const remedy =
    near === undefined
      ? `known here: ${known.filter((name) => !isFileKey(name, known)).join(', ')}`
      : `did you mean ${near}?`
  return { path, message: 'unknown key', remedy, bare: true }
}

function isFileKey(name: string, known: readonly string[]): boolean {
  return name.endsWith(fileSuffix) && known.includes(name.slice(0, -fileSuffix.length))
}

function unionComplaints(
  issue: Issue & { code: 'invalid_union' },
  schema: Schema,
  root: unknown,
): Complaint[] {
  const { path } = issue
  if ('discriminator' in issue && issue.discriminator !== undefined && issue.errors.length === 0) {
    const options = ('options' in issue ? (issue.options ?? []) : []).map(String)
    return [choiceComplaint(path, options, valueAt(root, path))]
  }
  // The member of the union that fits best: the first whose type is that of the value itself.
  const near = issue.errors.find((errors) => !errors.some(isWrongType))
  if (near !== undefined)
    return near.flatMap((inner) => complaintsOf({ ...inner, path: [...path, ...inner.path] }, schema, root))
  const words = [...new Set(issue.errors.flatMap(wordsOf))]
  return [
    {
      ...typeComplaint({ ...issue, expected: 'string' }, schema, root),
      message: `expected ${words.join(' or ')}`,
    },
  ]
}

function isWrongType(issue: Issue): boolean {
  return issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_union')
}

function wordsOf(issues: readonly Issue[]): string[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'invalid_union') return issue.errors.flatMap(wordsOf)
    const words = issue.code === 'invalid_type' ? typeWords[issue.expected] : undefined
    return words === undefined ? [] : [words]
  })
}

function typeComplaint(
  issue: { path: Path; expected: string; message: string },
  schema: Schema,
  root: unknown,
): Complaint {
  const { path, expected } = issue
  const field = schemaAt(schema, root, path)
  if (field !== undefined && metaOf(field).fieldKind === 'duration') return { path, message: durationWords }
  // A message of our own schema says more than a type.
  if (issue.message.startsWith('expected')) return { path, message: issue.message }
  const value = valueAt(root, path)
  const key = String(path.at(-1))
  if (value === undefined && field !== undefined && hasFileKey(field))
    return {
      path,
      message: 'expected text',
      remedy: `as ${key}, or in the file that ${key}${fileSuffix} names`,
    }
  const isBare = typeof value === 'number' || typeof value === 'boolean'
  const message = expectations[expected] ?? `expected ${expected}`
  return expected === 'string' && isBare ? { path, message, remedy: 'put it in quotes' } : { path, message }
}

function choiceComplaint(path: Path, options: readonly string[], value: unknown): Complaint {
  const message = options.length === 1 ? `expected ${options[0]}` : `expected one of ${options.join(', ')}`
  if (value === false && options.includes('off'))
    return {
      path,
      message,
      remedy: 'put off in quotes: what reads YAML 1.1, as Helm does, makes false of it',
    }
  const near = typeof value === 'string' ? nearest(value, options) : undefined
  return { path, message, remedy: near === undefined ? undefined : `did you mean ${near}?` }
}

function sizeMessage(issue: Issue & { code: 'too_small' | 'too_big' }): string {
  // A message of our own says more than a bound.
  if (issue.message.startsWith('expected')) return issue.message
  const small = issue.code === 'too_small'
  const bound = String(small ? issue.minimum : issue.maximum)
  const words = small ? `at least ${bound}` : `at most ${bound}`
  if (issue.origin === 'string')
    return small && bound === '1' ? 'expected a text that is not empty' : `expected ${words} characters`
  if (issue.origin === 'array') return `expected ${words} ${bound === '1' ? 'entry' : 'entries'}`
  return issue.inclusive === false ? `expected ${small ? 'more' : 'less'} than ${bound}` : `expected ${words}`
}

const durationWords = 'expected a duration such as 500ms, 10s, 15m, 6h or 3d'
const typeWords: Readonly<Record<string, string>> = {
  object: 'a mapping',
  record: 'a mapping',
  array: 'a list',
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
}
const expectations: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(typeWords).map(([type, words]) => [type, `expected ${words}`]),
)

function remedyIn(issue: Issue): string | undefined {
  const remedy = 'params' in issue ? property(issue.params, 'remedy') : undefined
  return typeof remedy === 'string' ? remedy : undefined
}

function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => property(value, key), root)
}

function schemaAt(root: Schema, value: unknown, path: Path): Schema | undefined {
  let schema: Schema | undefined = root
  let inner = value
  for (const key of path) {
    schema = schema && childOf(schema, key, inner)
    inner = property(inner, key)
  }
  return schema
}
