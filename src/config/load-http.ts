import { dirname, resolve } from 'node:path'
import * as z from 'zod'
import { hiddenOf, refused } from './conceal.ts'
import type { Env } from './file/env.ts'
import { parseYaml, readConfigText } from './file/parse.ts'
import { readTree } from './file/read.ts'
import { explainIssues } from './mistakes/explain.ts'
import type { Mistake } from './mistakes/mistake.ts'
import { configSchema } from './schema.ts'

/**
 * Reads only the section `http` of a config: a command that calls a running bridge needs its address, but not the secrets
 * of its receivers, and may not be able to read their files.
 */
export type LoadedHttp =
  | { readonly ok: true; readonly http: z.output<typeof httpSchema>['http'] }
  | { readonly ok: false; readonly mistakes: readonly Mistake[] }

const httpSchema = z.object({ http: configSchema.shape.http })

/** `without`: keys of the section that are not read. */
export function loadHttp(path: string, env: Env, without: readonly string[] = []): LoadedHttp {
  const file = readConfigText(path)
  if (!file.ok) return { ok: false, mistakes: [file.mistake] }
  const tree = parseYaml(file.text)
  if (!tree.ok) return refused(tree.mistakes)
  const leftOut = (at: readonly PropertyKey[]) =>
    at.length === 1 ? at[0] !== 'http' : at.length === 2 && without.includes(String(at[1]))
  const reading = readTree(httpSchema, { ...tree, env, folder: dirname(resolve(path)), leftOut })
  const parsed = httpSchema.safeParse(reading.value)
  const mistakes = [...reading.mistakes, ...explainIssues(parsed.error?.issues ?? [], httpSchema, reading)]
  if (!parsed.success || mistakes.length > 0) return refused(mistakes, hiddenOf(reading.locations, env))
  return { ok: true, http: parsed.data.http }
}
