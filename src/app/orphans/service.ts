import { randomUUID } from 'node:crypto'
import type { OrphansPort } from '../../admin/ports.ts'
import type { OrphanView } from '../../admin/views/orphan-view.ts'
import type { ProcessView } from '../../admin/views/status-view.ts'
import { noticeSource } from '../../alert/alert.ts'
import { toError } from '../../lib/errors.ts'
import { within } from '../../lib/time-limit.ts'
import { isRedisAway, redisErrorText } from '../../store/connection/redis-errors.ts'
import { thisProcess } from '../../store/source/lease.ts'
import {
  createNameStore,
  type KnownNames,
  type NameStore,
  type RunningProcess,
} from '../../store/source/names.ts'
import { createSourceData, hashAccount } from '../../store/source/source-data.ts'
import { forgetOthers } from '../../telemetry/series.ts'
import type { ActiveConfig } from '../active-config.ts'
import type { Operators } from '../notices/operators.ts'
import { listOrphans, orphansPort } from '../operator-api/orphans.ts'
import { takeOver } from '../source/takeover.ts'
import type { RuntimeTools } from '../tools.ts'
import { createOrphanWatch } from './watch.ts'

/** Handles names that left the config, and new names that take over from one that left. */
export interface OrphanService {
  readonly names: NameStore
  readonly port: OrphansPort
  /** null while Redis does not answer. */
  list(): Promise<OrphanView[] | null>
  /** The processes that run on this Redis, this one first; throws while Redis does not answer. */
  processes(): Promise<ProcessView[]>
  /** Called before a source polls for the first time; resolves to the reason why it has to wait, if there is one. */
  takeOver(source: string): Promise<string | undefined>
  /** Sets the gauges of orphans, and removes every metric of a sink or source that is no longer in use. */
  collectMetrics(ending: readonly string[]): Promise<void>
  /** Called when another config is in force. */
  onConfig(): void
  run(signal: AbortSignal): Promise<void>
}

interface OrphanServiceOptions extends RuntimeTools {
  readonly prefix: string
  readonly active: () => ActiveConfig
  readonly operators: () => Pick<Operators, 'onOrphan' | 'onNoOrphan' | 'renamed'>
}

const collectTimeoutMs = 1_000

export function createOrphanService(options: OrphanServiceOptions): OrphanService {
  const { prefix, active, operators, redis, metrics, clock, log } = options
  const names = createNameStore(redis.commands, prefix)
  const sourceData = createSourceData(redis.commands, prefix)
  const accountHashes = createAccountHashes(active, prefix)
  const list = (known?: KnownNames) => listOrphans(active(), { names, sourceData, accountHashes }, known)
  const process = randomUUID()
  const self = (): RunningProcess => ({
    name: thisProcess,
    role: options.role,
    configHash: active().configHash,
    refusedReload: options.refusedReload?.() != null,
  })
  const addWithheldToFired = (source: string) =>
    active()
      .routing.withheldIn(source)
      .addToFired()
      .catch((thrown: unknown) =>
        log.debug({ err: toError(thrown) }, 'a search may not find withheld alerts'),
      )
  let mayFind = true
  const findNames = async () => {
    try {
      if (mayFind) await names.findOnce()
      return mayFind
    } catch (thrown) {
      if (isRedisAway(thrown)) throw thrown
      mayFind = false
      const reason = redisErrorText(thrown)
      log.warn({ reason }, 'names that left the config before this version cannot be looked for')
      return false
    }
  }
  const watch = createOrphanWatch({
    async look() {
      const serve = () => names.serve(process, Object.keys(active().config.sinks), self())
      let known = await serve()
      if (!known.found && (await findNames())) known = await serve()
      await keepAccountHashes(names, known.sources, accountHashes())
      await active().orphans.tidy(known)
      return list(known)
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
    port: orphansPort(active, { names, sourceData, accountHashes }),
    list: () => list().catch(() => null),
    async processes() {
      const own = self()
      const others = (await names.processes()).filter(({ id }) => id !== process)
      return [own, ...others].map(({ id: _, ...about }: RunningProcess & { id?: string }) => {
        return { ...about, hasOurConfig: about.configHash === own.configHash }
      })
    },
    async takeOver(source) {
      const waitsFor = await takeOver({
        source,
        accountHashes,
        account: active().config.sources[source]?.account,
        names,
        sourceData,
        log,
        noticeOf: (from, to) => operators().renamed(from, to),
      })
      // Only searches need it: polls do not wait for it.
      if (waitsFor === undefined) void addWithheldToFired(source)
      return waitsFor
    },
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
      // So that the next process need not wait until the entry of this one expires.
      await within(collectTimeoutMs, 'leaving', names.serve(process, [])).catch(() => {})
    },
  }
}

/** After a token was replaced, stores its new hash: by it the next name of the source is recognised. */
async function keepAccountHashes(
  names: NameStore,
  sources: KnownNames['sources'],
  accountHashes: ReadonlyMap<string, string | undefined>,
): Promise<void> {
  for (const [name, { accountHash: known }] of sources) {
    const accountHash = accountHashes.get(name)
    if (accountHash !== undefined && accountHash !== known) await names.addSource(name, { accountHash })
  }
}

/** Remembers the hashes: every source asks for those of all others when it starts. */
function createAccountHashes(active: () => ActiveConfig, prefix: string) {
  const remembered = new Map<string, { baseUrl: string; token: string; hash: string }>()
  const hashOf = (name: string, baseUrl: string, token: string) => {
    const last = remembered.get(name)
    if (last?.baseUrl === baseUrl && last.token === token) return last.hash
    const hash = hashAccount(prefix, baseUrl, token)
    remembered.set(name, { baseUrl, token, hash })
    return hash
  }
  return (): ReadonlyMap<string, string | undefined> => {
    const hashes = new Map<string, string | undefined>()
    for (const [name, { baseUrl, token }] of Object.entries(active().config.sources))
      try {
        hashes.set(name, hashOf(name, baseUrl, token.reveal()))
      } catch {
        // The poller of this source reports what is wrong with the file.
        hashes.set(name, undefined)
      }
    return hashes
  }
}
