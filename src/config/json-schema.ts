import * as z from 'zod'
import { property } from '../alert/json/json.ts'
import { fileSuffix } from './file/secret-file.ts'
import { hasFileKey, mayBeEmpty, metaOf, type Schema } from './outline.ts'
import { configSchema } from './schema.ts'

/**
 * The JSON Schema (draft 7) of the config, for editors. It describes the file as it is written: any single value may
 * be a `${VAR}`, a section may be empty, durations are texts with a pattern, and each secret may be given as `…File`
 * instead. Deterministic.
 */
type JsonSchema = Readonly<Record<string, unknown>>

export function configJsonSchema(): JsonSchema {
  const generated = z.toJSONSchema(configSchema, {
    target: 'draft-07',
    io: 'input',
    unrepresentable: 'any',
    reused: 'inline',
    cycles: 'throw',
    override: ({ zodSchema, jsonSchema }) => rewrite(zodSchema, jsonSchema),
  })
  const { $schema, '~standard': _, ...rest } = generated as Record<string, unknown>
  const schema = withVariables(rest) as JsonSchema
  return {
    $schema,
    title: 'alert-bridge',
    description,
    ...schema,
  }
}

const description =
  `The config of alert-bridge. \${VAR} and \${VAR:-default} are filled from the environment. This schema is laxer than ` +
  'check-config, which also compares keys with each other and checks addresses, names, lengths of time and variables. It ' +
  'is stricter in one point: it knows no variable in the place of a list, a section or the type of a sink.'

/** The text for a file or a terminal. */
export function configJsonSchemaText(): string {
  const text = JSON.stringify(configJsonSchema(), null, 2)
  // Short lists of words are put on one line, as the formatter of this repository requires for the committed copy.
  const lists = /^(.*)\[\n((?: *"[^"\n]*",?\n)+) *\](,?)$/gm
  return `${text.replace(lists, (whole, start: string, items: string, end: string) => {
    const line = `${start}[${items.trim().replace(/\n */g, ' ')}]${end}`
    return line.length <= columnsMax ? line : whole
  })}\n`
}

const columnsMax = 110

const durationPattern = '^\\s*\\d+(\\.\\d+)?(ms|s|m|h|d)\\s*$'
const variablePattern = '\\$\\{'

type Draft = z.core.JSONSchema.BaseSchema

function rewrite(zodSchema: Schema, jsonSchema: Draft): void {
  const { fieldKind } = metaOf(zodSchema)
  if (fieldKind === 'secret') become(jsonSchema, { type: 'string', minLength: 1 })
  if (fieldKind === 'duration') become(jsonSchema, { type: 'string', pattern: durationPattern })
  delete jsonSchema['fieldKind']
  delete jsonSchema['maxMs']
  delete jsonSchema['show']
  delete jsonSchema['neverEmpty']
  const { def } = (zodSchema as z.core.$ZodTypes)._zod
  if (def.type === 'object') addFileKeys(jsonSchema, def.shape)
  // A section whose lines are all commented out.
  if (mayBeEmpty(zodSchema) && jsonSchema.type === 'object')
    (jsonSchema as { type: unknown }).type = ['object', 'null']
}

/** Replaces the schema by `rule`, but keeps its description and its default. */
function become(jsonSchema: Draft, rule: Draft): void {
  const kept = { default: jsonSchema.default, description: jsonSchema.description }
  for (const key of Object.keys(jsonSchema)) delete (jsonSchema as Record<string, unknown>)[key]
  for (const [key, value] of Object.entries({ ...rule, ...kept }))
    if (value !== undefined) jsonSchema[key] = value
}

/** Adds `tokenFile` beside `token`. Both together are refused; if `token` is required, one of the two must be there. */
function addFileKeys(jsonSchema: Draft, shape: Readonly<Record<string, Schema>>): void {
  const secrets = Object.entries(shape).filter(([, schema]) => hasFileKey(schema))
  const rules: Draft[] = []
  for (const [key] of secrets) {
    const fileKey = `${key}${fileSuffix}`
    // zod calls this once for an object itself, and again for each check or transform around it.
    if (jsonSchema.properties?.[fileKey] !== undefined) continue
    const description = `The path of a file that holds ${key}; a relative one starts from the folder of the config.`
    jsonSchema.properties = {
      ...jsonSchema.properties,
      [fileKey]: { type: 'string', minLength: 1, description },
    }
    if (!jsonSchema.required?.includes(key)) {
      rules.push({ not: { type: 'object', required: [key, fileKey] } })
      continue
    }
    jsonSchema.required = jsonSchema.required.filter((name) => name !== key)
    rules.push({ oneOf: [{ required: [key] }, { required: [fileKey] }] })
  }
  if (rules.length > 0) jsonSchema.allOf = [...(jsonSchema.allOf ?? []), ...rules]
}

/** Also allows a `${VAR}` for a number, a boolean, or a text of a certain form. */
function withVariables(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withVariables)
  if (typeof node !== 'object' || node === null) return node
  const copy: Record<string, unknown> = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, verbatim.has(key) ? value : withVariables(value)]),
  )
  if (Array.isArray(copy['anyOf'])) return { ...copy, anyOf: flattened(copy['anyOf']) }
  if (copy['type'] === 'string' && typeof copy['pattern'] === 'string')
    return { ...copy, pattern: `${copy['pattern']}|${variablePattern}` }
  const isNarrow =
    ['integer', 'number', 'boolean'].includes(String(copy['type'])) || copy['enum'] !== undefined
  if (!isNarrow) return copy
  const { default: fallback, description, ...rule } = copy
  const kept = { description, default: fallback, anyOf: [rule, variable] }
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined))
}

/** Keywords whose values are data, not schemas; and the names of sources and sinks, which may not be variables. */
const verbatim: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'required', 'propertyNames'])
const variable = { type: 'string', pattern: variablePattern }

/** One flat list of alternatives, each once. Where any text is allowed, the alternative for variables is left out. */
function flattened(members: readonly unknown[]): unknown[] {
  const flat = members.flatMap((member) => {
    const inner = property(member, 'anyOf')
    return Array.isArray(inner) && Object.keys(member as object).length === 1 ? inner : [member]
  })
  const takesText = flat.some(
    (member) => property(member, 'type') === 'string' && !property(member, 'pattern'),
  )
  const texts = flat.filter((member) => !takesText || property(member, 'pattern') !== variablePattern)
  return [...new Map(texts.map((member) => [JSON.stringify(member), member])).values()]
}
