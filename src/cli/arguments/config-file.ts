import { loadConfig } from '../../config/load.ts'
import { formatMistake } from '../../config/mistakes/mistake.ts'
import { UserError } from '../../lib/errors.ts'

/** The config of a file with its warnings. Throws a UserError that names every mistake. */
export function configOf(file: string) {
  const loaded = loadConfig(file, process.env)
  if (loaded.ok) return loaded
  throw new UserError(loaded.mistakes.map((each) => formatMistake(file, each)).join('\n'))
}
