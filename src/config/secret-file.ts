import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import * as z from 'zod'
import { Secret, secretBytesMax } from '../lib/secret.ts'
import { hasFileKey, type Schema } from './outline.ts'
import { describeReadError } from './read-error.ts'

/**
 * The `…File` twins: every secret `x` may instead be named by `xFile`, a path. The file is looked at once, so that a
 * missing, empty or malformed one is a mistake in the config; its text is read again whenever it is revealed.
 */
export interface FileKey {
  /** The secret's own key. */
  readonly key: string
  readonly schema: Schema
}

export const fileSuffix = 'File'

/** The secret that `key` is the twin of, unless the shape has a field of that name. */
export function fileKeyOf(key: string, shape: Readonly<Record<string, Schema>>): FileKey | undefined {
  if (!key.endsWith(fileSuffix) || Object.hasOwn(shape, key)) return undefined
  const secretKey = key.slice(0, -fileSuffix.length)
  const schema = Object.hasOwn(shape, secretKey) ? shape[secretKey] : undefined
  return schema !== undefined && hasFileKey(schema) ? { key: secretKey, schema } : undefined
}

/** Every key that a mapping of this shape may have, twins included. */
export function keysOf(shape: Readonly<Record<string, Schema>>): string[] {
  return Object.entries(shape).flatMap(([key, schema]) =>
    hasFileKey(schema) ? [key, `${key}${fileSuffix}`] : [key],
  )
}

export type FileSecretResult =
  | { readonly ok: true; readonly secret: Secret }
  | { readonly ok: false; readonly message: string }

/** The secret in the file at `path`, which starts from `folder` when it is relative. */
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
  // Only our own words: zod's may quote what they judge.
  const own = checked.error.issues.find((issue) => issue.code === 'custom')
  return { ok: false, message: `what stands in ${path} is no good: ${own?.message ?? 'unexpected text'}` }
}

/** Why what stands at `path` cannot be read again and again. A file that is not there yet may still come. */
export function unfitFile(path: string): string | undefined {
  try {
    const stat = statSync(path)
    if (stat.isFile()) return undefined
    return stat.isDirectory() ? 'this is a folder, not a file' : 'this is no plain file'
  } catch {
    return undefined
  }
}
