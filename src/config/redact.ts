import { stringify } from 'yaml'
import { property } from '../alert/json/json.ts'
import { durationText } from '../lib/duration.ts'
import { Secret } from '../lib/secret.ts'
import { conceal } from './conceal.ts'
import { shortHashOf } from './fingerprint.ts'
import { maskAddress } from './mistakes/describe-value.ts'
import { childOf, metaOf, type Schema } from './outline.ts'
import { type Config, configSchema } from './schema.ts'

/**
 * The effective config for people, in the form of a config file with every default filled in. Of a secret it shows only
 * that there is one, or its file; of an address, nothing that may be a credential; elsewhere, nothing of `hidden`.
 */
export function showConfig(config: Config, hidden: readonly Secret[] = []): string {
  return stringify(redactConfig(config, hidden), escaped, { lineWidth: 0, version: '1.2', schema: 'core' })
}

/** The same as a plain value, for `--json`. */
export function redactConfig(config: Config, hidden: readonly Secret[] = []): Record<string, unknown> {
  return concealed(redactObject(config, configSchema), hidden) as Record<string, unknown>
}

/**
 * A number that differs where two configs do, but for what belongs to one process and for secrets: it is shown to everybody
 * and changes with each config, and a few such numbers would be enough to try guesses of a short password.
 */
export function publicHashOf(config: Config): number {
  const { http: _, dataDir: __, log: ___, ...shared } = redactConfig(config)
  return Number.parseInt(shortHashOf([shared]), 16)
}

function concealed(value: unknown, hidden: readonly Secret[]): unknown {
  if (typeof value === 'string') return conceal(value, hidden)
  if (Array.isArray(value)) return value.map((inner) => concealed(inner, hidden))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([key, inner]) => [conceal(key, hidden), concealed(inner, hidden)]))
}

/** Writes `$` as `$$` where it would be read as a variable. */
function escaped(_key: unknown, value: unknown): unknown {
  return typeof value === 'string' ? value.replace(/\$(?=[${])/g, '$$$$') : value
}

function redactObject(value: object, schema: Schema | undefined): Record<string, unknown> {
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return Object.fromEntries(
    entries.map(([key, inner]) => [key, redact(inner, schema && childOf(schema, key, value))]),
  )
}

function redact(given: unknown, schema: Schema | undefined): unknown {
  const meta = schema === undefined ? {} : metaOf(schema)
  // The schema that has the show function also made the value, so its type is right.
  const value = meta.show === undefined ? given : meta.show(given as never)
  if (value instanceof Secret) return value.file === undefined ? '[redacted]' : `[from file ${value.file}]`
  if (meta.fieldKind === 'match') return value
  if (meta.fieldKind === 'duration' && typeof value === 'number') return durationText(value)
  if (typeof value === 'string') return maskAddress(value)
  if (Array.isArray(value)) return value.map((inner, index) => redact(inner, elementOf(schema, index, value)))
  if (typeof value === 'object' && value !== null) return redactObject(value, schema)
  return value
}

function elementOf(schema: Schema | undefined, index: number, list: unknown): Schema | undefined {
  return schema && childOf(schema, index, property(list, index))
}
