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
import { aliasTargets } from './aliases.ts'
import { type Env, fillVariables } from './env.ts'
import { formatPath, type Mistake, type Path, shownPath } from './mistake.ts'
import { admits, childOf, mayStandEmpty, metaOf, type Schema, shapeOf } from './outline.ts'
import { createPlaces, type Place, type Places } from './places.ts'
import { secretFromFile, type Twin, twinOf, unfitFile } from './twin.ts'
import { shownKey } from './yaml-error.ts'

/**
 * From the YAML tree to the plain value that the schema checks: variables are filled, `…File` twins become secrets,
 * every value's place is kept. The schema leads the way, because only it knows whether `12345` out of a variable is a
 * number or a token. It refuses trees that aliases blow up.
 */
export interface Reading {
  readonly value: unknown
  readonly places: Places
  readonly mistakes: readonly Mistake[]
  /** Paths about which a mistake has said everything; what the schema says of them is noise. */
  readonly settled: ReadonlySet<string>
  /** The tree was given up on; the value says nothing. */
  readonly tooLarge: boolean
}

export interface ReadContext {
  readonly document: Document
  readonly lines: LineCounter
  readonly env: Env
  /** The folder that relative paths of files start from. */
  readonly folder: string
  /** Keys that are passed over, with everything below them. */
  readonly leftOut?: (path: Path) => boolean
}

export function readTree(schema: Schema, context: ReadContext): Reading {
  const walk: Walk = {
    ...context,
    targets: aliasTargets(context.document),
    places: createPlaces(),
    mistakes: [],
    settled: new Set(),
    nodes: 0,
    pathChars: 0,
    reported: new Set(),
    tooLarge: false,
  }
  const value = read(walk, context.document.contents, schema, [])
  if (walk.tooLarge) walk.mistakes.splice(0, walk.mistakes.length, { path: '', line: 1, message: tooLarge })
  return { ...walk, value }
}

interface Walk extends ReadContext {
  readonly places: Places
  readonly mistakes: Mistake[]
  readonly settled: Set<string>
  /** The second ones of keys that stand twice: a mapping that aliases name is read again and again. */
  readonly reported: Set<Pair>
  readonly targets: ReadonlyMap<Alias, Node>
  nodes: number
  pathChars: number
  tooLarge: boolean
}

const nodesMax = 20_000
const depthMax = 50
/** Every value is noted under its path, in which the keys around it stand again. */
const pathCharsMax = 10_000_000
const textCharsMax = 65_536
const tooLarge = `the config holds more than ${nodesMax} values or too long keys, or is nested deeper than ${depthMax}`
/** Stands for a value that is not there: a variable that is empty, a secret whose file is no good. */
const absent = Symbol('absent')

function read(walk: Walk, node: unknown, schema: Schema | undefined, path: Path): unknown {
  walk.nodes += 1
  if (walk.nodes > nodesMax || path.length > depthMax) walk.tooLarge = true
  if (walk.tooLarge) return null
  if (isAlias(node)) {
    const target = walk.targets.get(node)
    if (target !== undefined) return read(walk, target, schema, path)
    addMistake(walk, path, node, 'this alias names no anchor above it')
    return null
  }
  const where = formatPath(path)
  walk.pathChars += where.length
  if (walk.pathChars > pathCharsMax) walk.tooLarge = true
  if (!walk.places.values.has(where)) walk.places.values.set(where, placeOfNode(walk, node))
  if (isMap(node)) return readMap(walk, node, schema, path)
  if (isSeq(node)) return readList(walk, node.items, schema, path)
  if (!isScalar(node)) return null
  return typeof node.value === 'string' ? readText(walk, node.value, node, schema, path) : node.value
}

function readMap(walk: Walk, map: YAMLMap, schema: Schema | undefined, path: Path): unknown {
  const entries = entriesOf(walk, map, path)
  const chooser = Object.fromEntries([...entries].map(([key, pair]) => [key, peek(walk, pair.value)]))
  const shape = schema === undefined ? undefined : shapeOf(schema, chooser)
  const result: Record<string, unknown> = {}
  for (const [key, pair] of entries) {
    if (walk.tooLarge) break
    const at = [...path, key]
    if (walk.leftOut?.(at)) continue
    walk.places.keys.set(formatPath(at), placeOfNode(walk, pair.key))
    const twin = shape === undefined ? undefined : twinOf(key, shape)
    if (twin !== undefined) {
      const secret = readTwin(walk, pair.value, twin, at, chooser[twin.key])
      if (secret !== absent) define(result, twin.key, secret)
      continue
    }
    const field = schema && childOf(schema, key, chooser)
    const value = read(walk, pair.value, field, at)
    const leftOut = value === null && field !== undefined && mayStandEmpty(field)
    if (value !== absent && !leftOut) define(result, key, value)
  }
  return result
}

/** The pairs of a map by key; those of `<<` come first, so that the map's own win. */
function entriesOf(walk: Walk, map: YAMLMap, path: Path): Map<string, Pair> {
  const own = ownEntries(walk, map)
  const merge = own.get('<<')
  own.delete('<<')
  if (merge === undefined) return own
  const shared = resolved(walk, merge.value)
  if (!isMap(shared)) {
    addMistake(walk, [...path, '<<'], merge.key, 'expected one alias of a mapping, such as <<: *shared')
    return own
  }
  walk.nodes += shared.items.length
  if (walk.nodes > nodesMax) walk.tooLarge = true
  if (walk.tooLarge) return own
  const merged = shared.items.map((pair): [string, Pair] => [keyOf(pair), pair])
  return new Map([...merged.filter(([key]) => key !== '<<'), ...own])
}

/** The last of a key that stands twice, and a mistake. */
function ownEntries(walk: Walk, map: YAMLMap): Map<string, Pair> {
  const entries = new Map<string, Pair>()
  for (const pair of map.items) {
    const key = keyOf(pair)
    if (entries.has(key) && !walk.reported.has(pair)) {
      walk.reported.add(pair)
      const message = `the key ${shownKey(key)} stands here twice`
      walk.mistakes.push({ path: '', ...placeOfNode(walk, pair.key), message })
    }
    entries.set(key, pair)
  }
  return entries
}

function readList(walk: Walk, items: readonly unknown[], schema: Schema | undefined, path: Path): unknown {
  const values: unknown[] = []
  for (const item of items) {
    const value = read(walk, item, schema && childOf(schema, values.length, undefined), [
      ...path,
      values.length,
    ])
    if (value !== absent) values.push(value)
  }
  return values
}

function readText(walk: Walk, text: string, node: unknown, schema: Schema | undefined, path: Path): unknown {
  const filled = fillVariables(text, walk.env)
  if (Math.max(text.length, filled.text.length) > textCharsMax) {
    addMistake(walk, path, node, `expected a text of at most ${textCharsMax} characters`)
    return ''
  }
  for (const problem of filled.problems) addMistake(walk, path, node, problem.message, problem.remedy)
  const { variables } = filled
  const meta = schema === undefined ? {} : metaOf(schema)
  const isPath = meta.fieldKind === 'path' && filled.text !== '' && filled.problems.length === 0
  const value = isPath ? resolve(walk.folder, filled.text) : filled.text
  const unfit = isPath ? unfitFile(value) : undefined
  if (unfit !== undefined) addMistake(walk, path, node, unfit)
  if (filled.problems.length > 0 || variables.length === 0) return value
  walk.places.filled.set(formatPath(path), { written: text, variables })
  if (filled.whole && value === '' && !meta.neverEmpty) return absent
  return schema === undefined ? value : typed(value, schema)
}

function readTwin(walk: Walk, node: unknown, twin: Twin, path: Path, sibling: unknown): unknown {
  const file = read(walk, node, undefined, path)
  // An empty variable and a bare key both mean that there is no file.
  if (file === absent || file === null) return absent
  const secretPath = formatPath([...path.slice(0, -1), twin.key])
  if (walk.settled.has(formatPath(path))) {
    walk.settled.add(secretPath)
    return absent
  }
  if (sibling !== undefined && sibling !== null && sibling !== '') {
    addMistake(walk, path, node, `${twin.key} is there too`, `keep one of the two`)
    return absent
  }
  const result = secretFromFile(file, twin.schema, walk.folder)
  if (result.ok) return result.secret
  addMistake(walk, path, node, result.message)
  walk.settled.add(secretPath)
  return absent
}

const numberCharsMax = 100

/** Text from a variable, as the number or boolean that the field wants. */
function typed(text: string, schema: Schema): unknown {
  const trimmed = text.length > numberCharsMax ? '' : text.trim()
  if (admits(schema, 'number') && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed))
    return Number(trimmed)
  if (admits(schema, 'boolean') && /^(true|false)$/i.test(trimmed)) return trimmed.toLowerCase() === 'true'
  return text
}

/** What a key holds, without reading it: it chooses the member of a union, and tells whether a twin has a rival. */
function peek(walk: Walk, node: unknown): unknown {
  const target = resolved(walk, node)
  if (!isScalar(target)) return target === null || target === undefined ? null : target
  return typeof target.value === 'string' ? fillVariables(target.value, walk.env).text : target.value
}

function resolved(walk: Walk, node: unknown): unknown {
  return isAlias(node) ? walk.targets.get(node) : node
}

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : ''
}

/** A key such as `__proto__` must become a key and nothing else. */
function define(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}

function addMistake(walk: Walk, path: Path, node: unknown, message: string, remedy?: string): void {
  walk.settled.add(formatPath(path))
  walk.mistakes.push({
    path: shownPath(path),
    ...placeOfNode(walk, node),
    message,
    ...(remedy === undefined ? {} : { remedy }),
  })
}

function placeOfNode(walk: Walk, node: unknown): Place {
  const start = (node as Node | null)?.range?.[0] ?? 0
  const { line, col } = walk.lines.linePos(start)
  return { line: Math.max(1, line), column: Math.max(1, col) }
}
