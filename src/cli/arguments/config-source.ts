import type { Config, SourceConfig } from '../../config/schema.ts'
import { UserError } from '../../lib/errors.ts'

/** The source that `--source` names; without it the only one. */
export function sourceOf(
  { sources }: Config,
  wanted: string | undefined,
): readonly [name: string, source: SourceConfig] {
  const known = Object.entries(sources)
  const [only] = known
  const found = known.find(([name]) => name === wanted)
  if (found !== undefined) return found
  const names = known.map(([name]) => name).join(', ')
  if (wanted !== undefined) throw new UserError(`--source: there is no ${wanted}; the config has ${names}.`)
  if (only !== undefined && known.length === 1) return only
  throw new UserError(`--source: the config has several; choose one of ${names}.`)
}
