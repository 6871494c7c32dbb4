import type { Silence } from '../alert/silence.ts'
import type { Clock } from '../lib/clock.ts'
import { within } from '../lib/time-limit.ts'
import type { SilenceStore, StoredSilence } from '../store/operators/silences.ts'
import type { Logger } from '../telemetry/log.ts'

/** Why a stored silence holds nothing back; undefined where it has its match. */
export function silenceProblem({ match, ofLaterVersion }: StoredSilence): string | undefined {
  if (match !== undefined) return undefined
  return ofLaterVersion
    ? 'this silence holds nothing back here, since a later version of alert-bridge wrote it: run that version, or expire it and add it again'
    : 'this silence holds nothing back, since it has a pattern that is too large for this version: expire it, and add it with another'
}

/** The silences as they are now; the last ones that were read where Redis does not answer in time. */
export type ReadSilences = () => Promise<readonly Silence[]>

interface SilenceReaderOptions {
  readonly store: Pick<SilenceStore, 'list'>
  readonly clock: Clock
  readonly log: Logger
  /** What Redis may cost a page. */
  readonly timeoutMs?: number
}

/** Never rejects. A bridge that has not read any yet sends what comes: a message too many is better than one too few. */
export function createSilenceReader(options: SilenceReaderOptions): ReadSilences {
  const { store, clock, log, timeoutMs = 1_000 } = options
  let known: readonly Silence[] = []
  let failing = false
  const warned = new Set<string>()
  return async () => {
    try {
      const stored = await within(timeoutMs, 'reading the silences', store.list(clock.now()))
      known = stored.flatMap(({ match, ...silence }) => (match === undefined ? [] : [{ ...silence, match }]))
      for (const silence of stored) {
        const problem = silenceProblem(silence)
        if (problem === undefined || warned.has(silence.id)) continue
        warned.add(silence.id)
        log.warn({ silence: silence.id }, problem)
      }
      failing = false
    } catch {
      if (!failing)
        log.warn({ known: known.length }, 'the silences cannot be read; the last known ones are used')
      failing = true
    }
    return known
  }
}
