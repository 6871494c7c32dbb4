import { dirname, resolve } from 'node:path'
import { withinCpuLimit } from '../alert/match/cpu-limit.ts'
import type { Secret } from '../lib/secret.ts'
import { checkAcross } from './checks/check.ts'
import { environmentWarnings, warningsOf } from './checks/warnings.ts'
import { concealMistake, hiddenOf, refused } from './conceal.ts'
import type { Env } from './file/env.ts'
import { parseYaml, readConfigText } from './file/parse.ts'
import { readTree } from './file/read.ts'
import { explainComplaints, explainIssues } from './mistakes/explain.ts'
import type { Mistake } from './mistakes/mistake.ts'
import { type Config, configSchema } from './schema.ts'

/**
 * The only way from a file to a `Config`: read, parse, fill, check, freeze. It never throws because of what the file
 * contains, ends soon whatever its size, and returns all mistakes at once (as many as a person can use). No mistake or
 * warning contains the value of a secret.
 */
export type LoadedConfig =
  | {
      readonly ok: true
      readonly config: Config
      readonly warnings: readonly Mistake[]
      /** Never to be shown with the config, wherever in it they are. */
      readonly hidden: readonly Secret[]
    }
  | { readonly ok: false; readonly mistakes: readonly Mistake[] }

export function loadConfig(path: string, env: Env, options: { again?: boolean } = {}): LoadedConfig {
  const file = readConfigText(path, options)
  if (!file.ok) return refused([file.mistake])
  return parseConfig(file.text, { env, folder: dirname(resolve(path)) })
}

/**
 * Limit of CPU time for trying all templates and compiling all patterns of a config: one for `check-config`, the start and a reload, so
 * that what one of them takes the others take. During a reload all waits: it is shorter than any lease or lock lasts that is renewed by
 * then. As large patterns as may be take 2 s, templates of 300 sinks 0.7.
 */
const configCpuMsMax = 5_000

/** The config in `text`; relative paths of `…File` start from `folder`. */
export function parseConfig(
  text: string,
  { cpuMsMax = configCpuMsMax, ...options }: { env: Env; folder: string; cpuMsMax?: number },
): LoadedConfig {
  const tree = parseYaml(text)
  if (!tree.ok) return refused(tree.mistakes)
  const reading = readTree(configSchema, { ...tree, ...options })
  if (reading.tooLarge) return refused(reading.mistakes)
  const hidden = hiddenOf(reading.locations, options.env)
  const parsed = withinCpuLimit(cpuMsMax, () => configSchema.safeParse(reading.value))
  const mistakes = [
    ...reading.mistakes,
    ...explainIssues(parsed.error?.issues ?? [], configSchema, reading),
    ...explainComplaints(checkAcross(reading.value), configSchema, reading),
  ]
  if (!parsed.success || mistakes.length > 0) return refused(mistakes, hidden)
  const complaints = explainComplaints(warningsOf(parsed.data, reading.value), configSchema, reading)
  const warnings = [...environmentWarnings(options.env), ...complaints]
  return {
    ok: true,
    config: deepFreeze(parsed.data),
    warnings: warnings.map((each) => concealMistake(each, hidden)),
    hidden,
  }
}

/** Freezes a value and everything in it. Secrets can be frozen too: their state is in private fields. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const inner of Object.values(value)) deepFreeze(inner)
  return value
}
