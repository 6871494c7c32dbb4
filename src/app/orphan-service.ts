import { randomUUID } from 'node:crypto'
import type { OrphanView } from '../admin/orphan-view.ts'
import type { OrphansPort } from '../admin/ports.ts'
import { within } from '../lib/time-limit.ts'
import { createNameStore, type NameStore } from '../store/names.ts'
import { isRedisAway, redisErrorText } from '../store/redis.ts'
import { accountMark, createSourceData } from '../store/source-data.ts'
import { forgetOthers } from '../telemetry/metrics.ts'
import type { ActiveConfig } from './active-config.ts'
import { noticeSource } from './notices.ts'
import { listOrphans, orphansPort } from './operator-api/orphans.ts'
import type { Operators } from './operators.ts'
import { createOrphanWatch } from './orphan-watch.ts'
import { takeOver } from './takeover.ts'
import type { RuntimeTools } from './tools.ts'

/** All that has to do with names that left the config, or came to it in the place of another. */
export interface OrphanService {
  readonly names: NameStore
  readonly port: OrphansPort
  /** null while Redis does not answer. */
  list(): Promise<OrphanView[] | null>
  /** What a source does before it polls for the first time; resolves to why it has to wait. */
  takeOver(source: string): Promise<string | undefined>
  /** Counts into the gauges, and takes every series away whose sink or source nobody works for any more. */
  collectMetrics(ending: readonly string[]): Promise<void>
  /** Another config is in force. */
  onConfig(): void
  run(signal: AbortSignal): Promise<void>
}

export interface OrphanServiceOptions extends RuntimeTools {
  readonly prefix: string
  readonly active: () => ActiveConfig
  readonly operators: () => Pick<Operators, 'onOrphan' | 'onNoOrphan' | 'onRenamed'>
}

const collectTimeoutMs = 1_000

export function createOrphanService(options: OrphanServiceOptions): OrphanService {
  const { prefix, active, operators, redis, metrics, clock, log } = options
  const names = createNameStore(redis.commands, prefix)
  const sourceData = createSourceData(redis.commands, prefix)
  const marks = () => marksOf(active(), prefix)
  const list = () => listOrphans(active(), { names, sourceData, marks })
  const process = randomUUID()
  let mayFind = true
  const findNames = async () => {
    try {
      if (mayFind) await names.findOnce()
    } catch (thrown) {
      if (isRedisAway(thrown)) throw thrown
      mayFind = false
      const reason = redisErrorText(thrown)
      log.warn({ reason }, 'names that left the config before this version cannot be looked for')
    }
  }
  const watch = createOrphanWatch({
    async look() {
      await names.serve(process, Object.keys(active().config.sinks))
      await findNames()
      await keepMarks(names, marks())
      await active().orphans.tidy()
      return list()
    },
    named: () => [
      ...Object.keys(active().config.sinks).map((name) => ({ kind: 'sink' as const, name })),
      ...Object.keys(active().config.sources).map((name) => ({ kind: 'source' as const, name })),
    ],
    onFound: (orphan) => operators().onOrphan(orphan),
    onNone: (name) => operators().onNoOrphan(name),
    clock,
    log,
  })
  return {
    names,
    port: orphansPort(active, { names, sourceData, marks }),
    list: () => list().catch(() => null),
    takeOver: (source) =>
      takeOver({
        source,
        marks,
        account: active().config.sources[source]?.account,
        names,
        sourceData,
        log,
        onRenamed: (from, to) => operators().onRenamed(from, to),
      }),
    async collectMetrics(ending) {
      const { sinks, sources } = active().config
      await forgetOthers(metrics, {
        sinks: [...Object.keys(sinks), ...ending],
        sources: [...Object.keys(sources), noticeSource],
      })
      const left = await within(collectTimeoutMs, 'counting orphans', active().orphans.list()).catch(
        () => undefined,
      )
      metrics.orphanedJobs.reset()
      for (const { sink, waiting, sending, delayed, dead } of left ?? [])
        metrics.orphanedJobs.set({ sink }, waiting + sending + delayed + dead)
    },
    onConfig: () => watch.lookAgain(),
    async run(signal) {
      await watch.run(signal)
      // Who starts next need not wait until this is no longer believed.
      await within(collectTimeoutMs, 'leaving', names.serve(process, [])).catch(() => {})
    },
  }
}

/** A token that was replaced is still the account of its source: by it the next name would be known. */
async function keepMarks(names: NameStore, marks: ReadonlyMap<string, string | undefined>): Promise<void> {
  for (const [name, { mark: known }] of await names.sources()) {
    const mark = marks.get(name)
    if (mark !== undefined && mark !== known) await names.addSource(name, { mark })
  }
}

function marksOf({ config }: ActiveConfig, prefix: string): Map<string, string | undefined> {
  const known = Object.entries(config.sources).map(
    ([name, { baseUrl, token }]): [string, string | undefined] => {
      try {
        return [name, accountMark(prefix, baseUrl, token.reveal())]
      } catch {
        // Whoever polls says what is wrong with the file.
        return [name, undefined]
      }
    },
  )
  return new Map(known)
}
