import type { Config } from '../config/schema.ts'
import type { Retention } from '../delivery/queue/queues.ts'
import type { IntakeDeps } from '../intake/intake.ts'
import { createAssign } from '../routing/assign.ts'
import { createKindWatch, type KindWatch } from '../routing/kind-watch.ts'
import { silentRules } from '../routing/rule-health.ts'
import type { RuleBook } from '../routing/rules.ts'
import { createSilenceReader, silenceProblem } from '../routing/silences.ts'
import { isActiveAt } from '../schedule/forecast/profile.ts'
import { createSilenceStore, type SilenceStore } from '../store/operators/silences.ts'
import { createThrottles } from '../store/operators/throttle.ts'
import { createKindStore } from '../store/source/kinds.ts'
import { createRuleStore } from '../store/source/rules.ts'
import { createWithheldStore, type WithheldStore } from '../store/walk/withheld.ts'
import { scheduleOptionsOf } from './source/schedule-options.ts'
import type { RuntimeTools } from './tools.ts'

/** Which sinks alerts go to and what withholds them: the routes of the config with all that they need to decide. */
export interface AlertRouting {
  readonly prepareAssign: IntakeDeps['prepareAssign']
  /** Counts the kinds of alerts that were handled. */
  readonly onHandled: IntakeDeps['onHandled']
  readonly silences: SilenceStore
  /** Also of a source that is in no config, or only in that of another process. */
  withheldIn(source: string): WithheldStore
  /** Kinds that routes name but no alert has had, by source; rejects when Redis is away. */
  kindNotes: KindWatch['notes']
  /** A sentence for each stored silence that holds nothing back; rejects when Redis is away. */
  silenceNotes(): Promise<readonly string[]>
  /** The rules of the API as they were last read, each with its source, and in `silent` why it may not fire, or null. */
  knownRules(): Promise<readonly Readonly<Record<string, unknown>>[]>
}

export function createRouting(
  config: Config,
  { redis: { commands: redis }, clock, log }: RuntimeTools,
  rulesOf: (source: string) => RuleBook,
): AlertRouting {
  const { prefix } = config.redis
  const retention = retentionOf(config)
  const withheldIn = (source: string) => createWithheldStore({ redis, prefix, source, retention })
  const silences = createSilenceStore({ redis, prefix })
  const rulesIn = async (source: string) =>
    (await createRuleStore({ redis, prefix, source }).load())?.rows ?? []
  const kinds = createKindWatch({
    routes: config.routes,
    sources: Object.keys(config.sources),
    storeOf: (source) => createKindStore({ redis, prefix, source }),
    ruleKindsOf: async (source) => (await rulesIn(source)).map(({ kind }) => String(kind ?? '')),
    log,
  })
  return {
    prepareAssign: createAssign({
      routes: config.routes,
      readSilences: createSilenceReader({ store: silences, clock, log }),
      rulesOf,
      throttles: createThrottles({ redis, prefix }),
      withheldOf: withheldIn,
    }),
    // Not awaited: intake need not wait for it, and it never rejects.
    onHandled: (alerts) => void kinds.saw(alerts),
    kindNotes: () => kinds.notes(),
    silenceNotes: async () => {
      const refused = (await silences.list(clock.now())).filter(({ match }) => match === undefined)
      return refused
        .slice(0, silenceNotesMax)
        .map((silence) => `silence ${silence.id}: ${silenceProblem(silence)}`)
    },
    silences,
    withheldIn,
    async knownRules() {
      const lists = Object.keys(config.sources).map(async (source) => {
        const rows = await rulesIn(source)
        const plan = scheduleOptionsOf(known(config.sources[source], source))
        const isActive = (atMs: number) => isActiveAt(atMs, plan)
        const silent = new Map(silentRules(rows, isActive).map(({ id, text }) => [id, text]))
        return rows.map((row) => ({ source, ...row, silent: silent.get(String(row['id'])) ?? null }))
      })
      return (await Promise.all(lists)).flat()
    },
  }
}

const silenceNotesMax = 10

/** Alerts come from configured sources only. */
export function known<T>(value: T | undefined, source: string): T {
  if (value === undefined) throw new Error(`there is no source ${source}`)
  return value
}

/** How long records of what was delivered, and of what was held back, are kept. */
export function retentionOf({ retention: { age, count } }: Config): Retention {
  return { ageMs: age, count }
}
