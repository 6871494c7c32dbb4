import * as z from 'zod'
import { property } from '../alert/json/json.ts'

/**
 * Reads the structure of the config out of its zod schema: which keys a mapping may have, which fields are secrets or
 * durations, how a value is written. `read.ts`, `explain.ts`, `--show` and the JSON Schema all use it, so a field is
 * declared once, in its schema.
 */
export type Schema = z.core.$ZodType

/** What a schema may have in its `meta`. */
interface FieldMeta {
  /** What a `match` is compared with alerts: it is no address of the bridge, and a `?` in it begins no query. */
  readonly fieldKind?: 'duration' | 'secret' | 'path' | 'match'
  /** The longest that a duration may be. */
  readonly maxMs?: number
  /** Optional, but a key without a value is a mistake: as if it were left out, it would allow more than was meant. */
  readonly neverEmpty?: boolean
  /** Returns a parsed value as it is written in the file. */
  readonly show?: (value: never) => unknown
}

/** The meta of a schema and of the schemas that it wraps; the outer ones win. */
export function metaOf(schema: Schema): FieldMeta {
  const inner = innerOf(schema)
  const own = (z.globalRegistry.get(schema) ?? {}) as FieldMeta
  return inner === undefined ? own : { ...metaOf(inner), ...own }
}

/** The schema without wrappers (optional, default, transform …): an object, a record, an array, a union or a leaf. */
export function coreOf(schema: Schema): Schema {
  const inner = innerOf(schema)
  return inner === undefined ? schema : coreOf(inner)
}

/** Whether it is a secret, or a list of secrets. */
export function isSecret(schema: Schema): boolean {
  if (metaOf(schema).fieldKind === 'secret') return true
  const { def } = (coreOf(schema) as z.core.$ZodTypes)._zod
  if (def.type === 'array') return isSecret(def.element)
  return def.type === 'union' && def.options.length > 0 && def.options.every(isSecret)
}

/** Whether it is a secret that may be in a file of its own; a list of secrets may not. */
export function hasFileKey(schema: Schema): boolean {
  return isSecret(schema) && (coreOf(schema) as z.core.$ZodTypes)._zod.def.type !== 'array'
}

/** The fields of an object; of a discriminated union, those of the member that `value` chooses. */
export function shapeOf(schema: Schema, value: unknown): Readonly<Record<string, Schema>> | undefined {
  const { def } = (coreOf(schema) as z.core.$ZodTypes)._zod
  if (def.type === 'object') return def.shape
  if (def.type !== 'union') return undefined
  const shapes = def.options.map((option) => shapeOf(option, value)).filter((shape) => shape !== undefined)
  const discriminator = 'discriminator' in def ? String(def.discriminator) : undefined
  if (discriminator === undefined) return shapes[0]
  const wanted = property(value, discriminator)
  return shapes.find((shape) => {
    const literal = shape[discriminator]
    return literal !== undefined && z.safeParse(literal, wanted).success
  })
}

/** The schema of the value under `key`; undefined when the schema has no such key. */
export function childOf(schema: Schema, key: PropertyKey, value: unknown): Schema | undefined {
  const shape = shapeOf(schema, value)
  if (shape !== undefined && Object.hasOwn(shape, key)) return shape[String(key)]
  const { def } = (coreOf(schema) as z.core.$ZodTypes)._zod
  if (def.type === 'record') return def.valueType
  if (def.type === 'array') return def.element
  if (def.type === 'union')
    return def.options.map((option) => childOf(option, key, value)).find((child) => child !== undefined)
  return undefined
}

/** Whether it is a section that may be left out. Then its key may also be there with every line below commented out. */
export function mayBeEmpty(schema: Schema): boolean {
  const isSection = (coreOf(schema) as z.core.$ZodTypes)._zod.def.type === 'object'
  return isSection && schema._zod.optin !== undefined && !metaOf(schema).neverEmpty
}

/** Whether the schema accepts a number, or a boolean. */
export function admits(schema: Schema, kind: 'number' | 'boolean'): boolean {
  const { def } = (coreOf(schema) as z.core.$ZodTypes)._zod
  if (def.type === 'union') return def.options.some((option) => admits(option, kind))
  return def.type === kind
}

function innerOf(schema: Schema): Schema | undefined {
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
    case 'nullable':
    case 'nonoptional':
    case 'readonly':
    case 'catch':
      return def.innerType
    case 'pipe':
      return def.in
    default:
      return undefined
  }
}
