import { createHash } from 'node:crypto'
import { Secret } from '../lib/secret.ts'
import { readSmallFile } from '../lib/small-file.ts'
import { childOf, metaOf, property, type Schema } from './outline.ts'
import { type Config, configSchema } from './schema.ts'

/**
 * Tells whether two configs say the same of a part: secrets count by their value, files by what they hold now, and
 * neither can be read back from the fingerprint. It is worth something in this process alone.
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
 * The same in every process and version that is told the same values, so that it may be kept. Of all the values together
 * it holds so little that it confirms no guess of a secret; one change in 65,536 leaves it as it is.
 */
export function shortMarkOf(values: readonly unknown[]): string {
  return hashOf(JSON.stringify(canonical(values, undefined, revealed))).slice(0, 4)
}

/** One that stands in a file that cannot be read is like none. */
function revealed(secret: Secret): string {
  try {
    return secret.reveal()
  } catch {
    return ''
  }
}

function canonical(value: unknown, schema: Schema | undefined, tell: (secret: Secret) => string): unknown {
  if (value instanceof Secret) return tell(value)
  if (Array.isArray(value))
    return value.map((inner, index) => canonical(inner, inside(schema, index, value), tell))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, canonical(inner, inside(schema, key, value), tell)])
  const isFile = schema !== undefined && metaOf(schema).fieldKind === 'path'
  return isFile && typeof value === 'string' ? [value, fileMark(value)] : value
}

function inside(schema: Schema | undefined, key: PropertyKey, value: object): Schema | undefined {
  return schema && childOf(schema, key, Array.isArray(value) ? property(value, key) : value)
}

/** A file that is larger is no certificate or key. */
const fileBytesMax = 1_048_576

/** Whoever uses the file says what is wrong with it. */
function fileMark(path: string): string {
  try {
    return hashOf(readSmallFile(path, fileBytesMax))
  } catch {
    return ''
  }
}

function hashOf(data: string): string {
  return createHash('sha256').update(data).digest('hex')
}
