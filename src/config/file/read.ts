import { resolve } from 'node:path'
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Pair,
  type YAMLMap,
} from 'yaml'
import { formatPath, type Mistake, type Path, shownPath } from '../mistakes/mistake.ts'
import { admits, childOf, mayBeEmpty, metaOf, type Schema, shapeOf } from '../outline.ts'
import { aliasTargets } from './aliases.ts'
import { type Env, fillVariables } from './env.ts'
import { createLocations, type Location, type Locations } from './locations.ts'
import { type FileKey, fileKeyOf, secretFromFile, unfitFile } from './secret-file.ts'
import { shownKey } from './yaml-error.ts'

/**
 * Turns the YAML tree into the plain value that the schema checks: fills variables, replaces `…File` keys by their
 * secrets, and stores where each value is in the file. It reads by the schema, because only the schema says whether
 * `12345` from a variable is a number or a token. It refuses trees that aliases make too large.
 */
export interface ReadResult {
  readonly value: unknown
  readonly locations: Locations
  readonly mistakes: readonly Mistake[]
  /** Paths that already have a mistake; further issues of the schema at these paths are not shown. */
  readonly settled: ReadonlySet<string>
  /** The tree was not read to its end; the value must not be used. */
  readonly tooLarge: boolean
}

interface ReadContext {
  readonly document: Document
  readonly lines: LineCounter
  readonly env: Env
  /** Relative paths of files start from this folder. */
  readonly folder: string
  /** Returns true for keys that are not read, with everything below them. */
  readonly leftOut?: (path: Path) => boolean
}

export function readTree(schema: Schema, context: ReadContext): ReadResult {
  const state: ReadState = {
    ...context,
    targets: aliasTargets(context.document),
    locations: createLocations(),
    mistakes: [],
    settled: new Set(),
    nodes: 0,
    pathChars: 0,
    reported: new Set(),
    tooLarge: false,
  }
  const value = read(state, context.document.contents, schema, [])
  if (state.tooLarge)
    state.mistakes.splice(0, state.mistakes.length, { path: '', line: 1, message: tooLarge })
  return { ...state, value }
}

interface ReadState extends ReadContext {
  readonly locations: Locations
  readonly mistakes: Mistake[]
  readonly settled: Set<string>
  /** The keys already reported as being there twice: a mapping is read again for each of its aliases. */
  readonly reported: Set<Pair>
  readonly targets: ReadonlyMap<Alias, Node>
  nodes: number
  pathChars: number
  tooLarge: boolean
}

const nodesMax = 20_000
const depthMax = 50
/** The location of every value is stored under its path, and a path repeats all keys around the value. */
const pathCharsMax = 10_000_000
const textCharsMax = 65_536
const tooLarge = `the config holds more than ${nodesMax} values or too long keys, or is nested deeper than ${depthMax}`
/** Returned instead of a value that is missing: a variable that is empty. */
const absent = Symbol('absent')
/** Instead of a secret whose file is not valid, so that nothing says that its key is missing. */
const unread = ''

function read(state: ReadState, node: unknown, schema: Schema | undefined, path: Path): unknown {
  state.nodes += 1
  if (state.nodes > nodesMax || path.length > depthMax) state.tooLarge = true
  if (state.tooLarge) return null
  if (isAlias(node)) {
    const target = state.targets.get(node)
    if (target !== undefined) return read(state, target, schema, path)
    addMistake(state, path, node, 'this alias names no anchor above it')
    return null
  }
  const where = formatPath(path)
  state.pathChars += where.length
  if (state.pathChars > pathCharsMax) state.tooLarge = true
  if (!state.locations.values.has(where)) state.locations.values.set(where, locationOfNode(state, node))
  if (isMap(node)) return readMap(state, node, schema, path)
  if (isSeq(node)) return readList(state, node.items, schema, path)
  if (!isScalar(node)) return null
  return typeof node.value === 'string' ? readText(state, node.value, node, schema, path) : node.value
}

function readMap(state: ReadState, map: YAMLMap, schema: Schema | undefined, path: Path): unknown {
  const entries = entriesOf(state, map, path)
  const chooser = Object.fromEntries([...entries].map(([key, pair]) => [key, peek(state, pair.value)]))
  const shape = schema === undefined ? undefined : shapeOf(schema, chooser)
  const result: Record<string, unknown> = {}
  for (const [key, pair] of entries) {
    if (state.tooLarge) break
    const at = [...path, key]
    if (state.leftOut?.(at)) continue
    state.locations.keys.set(formatPath(at), locationOfNode(state, pair.key))
    const fileKey = shape === undefined ? undefined : fileKeyOf(key, shape)
    if (fileKey !== undefined) {
      const secret = readFileKey(state, pair.value, fileKey, at, chooser[fileKey.key])
      if (secret !== absent) define(result, fileKey.key, secret)
      continue
    }
    const field = schema && childOf(schema, key, chooser)
    const value = read(state, pair.value, field, at)
    const leftOut = value === null && field !== undefined && mayBeEmpty(field)
    if (value !== absent && !leftOut) define(result, key, value)
  }
  return result
}

/** The pairs of a map by key. Those of `<<` are added first, so that the map's own replace them. */
function entriesOf(state: ReadState, map: YAMLMap, path: Path): Map<string, Pair> {
  const own = ownEntries(state, map)
  const merge = own.get('<<')
  own.delete('<<')
  if (merge === undefined) return own
  const shared = resolved(state, merge.value)
  if (!isMap(shared)) {
    addMistake(state, [...path, '<<'], merge.key, 'expected one alias of a mapping, such as <<: *shared')
    return own
  }
  state.nodes += shared.items.length
  if (state.nodes > nodesMax) state.tooLarge = true
  if (state.tooLarge) return own
  const merged = shared.items.map((pair): [string, Pair] => [keyOf(pair), pair])
  return new Map([...merged.filter(([key]) => key !== '<<'), ...own])
}

/** Of a key that is there twice, the last one; adds a mistake. */
function ownEntries(state: ReadState, map: YAMLMap): Map<string, Pair> {
  const entries = new Map<string, Pair>()
  for (const pair of map.items) {
    const key = keyOf(pair)
    if (entries.has(key) && !state.reported.has(pair)) {
      state.reported.add(pair)
      const message = `the key ${shownKey(key)} is here twice`
      state.mistakes.push({ path: '', ...locationOfNode(state, pair.key), message })
    }
    entries.set(key, pair)
  }
  return entries
}

function readList(
  state: ReadState,
  items: readonly unknown[],
  schema: Schema | undefined,
  path: Path,
): unknown {
  const values: unknown[] = []
  for (const item of items) {
    const value = read(state, item, schema && childOf(schema, values.length, undefined), [
      ...path,
      values.length,
    ])
    if (value !== absent) values.push(value)
  }
  return values
}

function readText(
  state: ReadState,
  text: string,
  node: unknown,
  schema: Schema | undefined,
  path: Path,
): unknown {
  const filled = fillVariables(text, state.env)
  if (Math.max(text.length, filled.text.length) > textCharsMax) {
    addMistake(state, path, node, `expected a text of at most ${textCharsMax} characters`)
    return ''
  }
  for (const problem of filled.problems) addMistake(state, path, node, problem.message, problem.remedy)
  const { variables } = filled
  const meta = schema === undefined ? {} : metaOf(schema)
  const isPath = meta.fieldKind === 'path' && filled.text !== '' && filled.problems.length === 0
  const value = isPath ? resolve(state.folder, filled.text) : filled.text
  const unfit = isPath ? unfitFile(value) : undefined
  if (unfit !== undefined) addMistake(state, path, node, unfit)
  if (filled.problems.length > 0 || variables.length === 0) return value
  state.locations.filled.set(formatPath(path), { written: text, variables })
  if (filled.whole && value === '' && !meta.neverEmpty) return absent
  return schema === undefined ? value : typed(value, schema)
}

function readFileKey(
  state: ReadState,
  node: unknown,
  { key, schema }: FileKey,
  path: Path,
  sibling: unknown,
): unknown {
  const file = read(state, node, undefined, path)
  // An empty variable and a key without a value both mean that there is no file.
  if (file === absent || file === null) return absent
  const secretPath = formatPath([...path.slice(0, -1), key])
  if (state.settled.has(formatPath(path))) {
    state.settled.add(secretPath)
    return unread
  }
  if (sibling !== undefined && sibling !== null && sibling !== '') {
    addMistake(state, path, node, `${key} is there too`, `keep one of the two`)
    return absent
  }
  const result = secretFromFile(file, schema, state.folder)
  if (result.ok) return result.secret
  addMistake(state, path, node, result.message)
  state.settled.add(secretPath)
  return unread
}

const numberCharsMax = 100

/** Text from a variable, as a number or boolean when the field accepts one. */
function typed(text: string, schema: Schema): unknown {
  const trimmed = text.length > numberCharsMax ? '' : text.trim()
  if (admits(schema, 'number') && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed))
    return Number(trimmed)
  if (admits(schema, 'boolean') && /^(true|false)$/i.test(trimmed)) return trimmed.toLowerCase() === 'true'
  return text
}

/** The plain value of a key. By it the member of a union is chosen, and a secret beside its `…File` key is found. */
function peek(state: ReadState, node: unknown): unknown {
  const target = resolved(state, node)
  if (!isScalar(target)) return target === null || target === undefined ? null : target
  return typeof target.value === 'string' ? fillVariables(target.value, state.env).text : target.value
}

function resolved(state: ReadState, node: unknown): unknown {
  return isAlias(node) ? state.targets.get(node) : node
}

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : ''
}

/** Assigning to a key such as `__proto__` would not create a property. */
function define(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}

function addMistake(state: ReadState, path: Path, node: unknown, message: string, remedy?: string): void {
  state.settled.add(formatPath(path))
  state.mistakes.push({
    path: shownPath(path),
    ...locationOfNode(state, node),
    message,
    ...(remedy === undefined ? {} : { remedy }),
  })
}

function locationOfNode(state: ReadState, node: unknown): Location {
  const start = (node as Node | null)?.range?.[0] ?? 0
  const { line, col } = state.lines.linePos(start)
  return { line: Math.max(1, line), column: Math.max(1, col) }
}
