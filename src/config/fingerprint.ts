import { createHash } from 'node:crypto'
import { property } from '../alert/json/json.ts'
import { Secret } from '../lib/secret.ts'
import { readSmallFile } from '../lib/small-file.ts'
import { childOf, metaOf, type Schema } from './outline.ts'
import { type Config, configSchema } from './schema.ts'

/**
 * Equal for two configs when the part under `keys` is equal: secrets are compared by their value, files by their content
 * now; neither can be read from the fingerprint. Two fingerprints can be compared within one process only.
 */
export function fingerprintOf(config: Config, ...keys: readonly string[]): string {
  let value: unknown = config
  let schema: Schema | undefined = configSchema
  for (const key of keys) {
    const inner = property(value, key)
    schema = schema && childOf(schema, key, value)
    value = inner
  }
  return hashOf(JSON.stringify(canonical(value, schema, (secret) => secret.fingerprint())) ?? '')
}

/**
 * The same for the same values in every process and version, so it may be stored. It has only 16 bits of a hash of all
 * values together, too few to confirm a guess of a secret; so one change in 65,536 goes unnoticed.
 */
export function shortHashOf(values: readonly unknown[]): string {
  return hashOf(JSON.stringify(canonical(values, undefined, revealed))).slice(0, 4)
}

/** A secret whose file cannot be read counts as empty. */
function revealed(secret: Secret): string {
  try {
    return secret.reveal()
  } catch {
    return ''
  }
}

function canonical(value: unknown, schema: Schema | undefined, textOf: (secret: Secret) => string): unknown {
  if (value instanceof Secret) return textOf(value)
  if (Array.isArray(value))
    return value.map((inner, index) => canonical(inner, inside(schema, index, value), textOf))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, canonical(inner, inside(schema, key, value), textOf)])
  const isFile = schema !== undefined && metaOf(schema).fieldKind === 'path'
  return isFile && typeof value === 'string' ? [value, fileHash(value)] : value
}

function inside(schema: Schema | undefined, key: PropertyKey, value: object): Schema | undefined {
  return schema && childOf(schema, key, Array.isArray(value) ? property(value, key) : value)
}

/** No certificate or key is larger. */
const fileBytesMax = 1_048_576

/** '' when the file cannot be read: the code that uses the file reports that. */
function fileHash(path: string): string {
  try {
    return hashOf(readSmallFile(path, fileBytesMax))
  } catch {
    return ''
  }
}

function hashOf(data: string): string {
  return createHash('sha256').update(data).digest('hex')
}
