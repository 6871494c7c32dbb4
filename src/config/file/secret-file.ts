import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import * as z from 'zod'
import { Secret, secretBytesMax } from '../../lib/secret.ts'
import { hasFileKey, type Schema } from '../outline.ts'
import { describeReadError } from './read-error.ts'

/**
 * The `…File` keys: instead of a secret `x`, the config may have `xFile`, the path of its file. The file is read once
 * here, so that a missing, empty or malformed one is a mistake in the config, and again each time the secret is used.
 */
export interface FileKey {
  /** The secret's own key. */
  readonly key: string
  readonly schema: Schema
}

export const fileSuffix = 'File'

/** The secret whose file `key` names, unless the shape has a field of that name. */
export function fileKeyOf(key: string, shape: Readonly<Record<string, Schema>>): FileKey | undefined {
  if (!key.endsWith(fileSuffix) || Object.hasOwn(shape, key)) return undefined
  const secretKey = key.slice(0, -fileSuffix.length)
  const schema = Object.hasOwn(shape, secretKey) ? shape[secretKey] : undefined
  return schema !== undefined && hasFileKey(schema) ? { key: secretKey, schema } : undefined
}

/** Every key that a mapping of this shape may have, with the `…File` keys. */
export function keysOf(shape: Readonly<Record<string, Schema>>): string[] {
  return Object.entries(shape).flatMap(([key, schema]) =>
    hasFileKey(schema) ? [key, `${key}${fileSuffix}`] : [key],
  )
}

type FileSecretResult =
  | { readonly ok: true; readonly secret: Secret }
  | { readonly ok: false; readonly message: string }

/** The secret in the file at `path`; a relative path starts from `folder`. */
export function secretFromFile(path: unknown, schema: Schema, folder: string): FileSecretResult {
  if (typeof path !== 'string' || path === '') return { ok: false, message: 'expected the path of a file' }
  const file = resolve(folder, path)
  let text: string
  try {
    const unfit = unfitFile(file)
    if (unfit !== undefined) return { ok: false, message: unfit }
    if (statSync(file).size > secretBytesMax)
      return { ok: false, message: `the file is larger than ${secretBytesMax} bytes` }
    text = Secret.fromFile(file).reveal()
  } catch (thrown) {
    return { ok: false, message: `the file cannot be read: ${describeReadError(thrown)}` }
  }
  if (text.trim() === '') return { ok: false, message: 'the file is empty' }
  const checked = z.safeParse(schema, text)
  if (checked.success) return { ok: true, secret: Secret.fromFile(file) }
  // Only messages of our own: those of zod may quote the secret.
  const own = checked.error.issues.find((issue) => issue.code === 'custom')
  return { ok: false, message: `the content of ${path} is not valid: ${own?.message ?? 'unexpected text'}` }
}

/** Why the file at `path` cannot be read repeatedly. A file that does not exist yet is not refused here. */
export function unfitFile(path: string): string | undefined {
  try {
    const stat = statSync(path)
    if (stat.isFile()) return undefined
    return stat.isDirectory() ? 'this is a folder, not a file' : 'this is no plain file'
  } catch {
    return undefined
  }
}
