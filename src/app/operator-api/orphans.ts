import type { OrphansPort } from '../../admin/ports.ts'
import type { OrphanKind, OrphanView } from '../../admin/views/orphan-view.ts'
import type { PortionOrder } from '../../delivery/records/selection.ts'
import { NotFoundError, UserError } from '../../lib/errors.ts'
import type { KnownNames, NameStore } from '../../store/source/names.ts'
import type { SourceData, SourceDataLeft } from '../../store/source/source-data.ts'
import type { ActiveConfig } from '../active-config.ts'
import { searchDeliveries } from './delivery-search.ts'
import { isoOrNull } from './views.ts'

/** What is left of names that the config in force does not have. */
interface OrphanTools {
  readonly names: NameStore
  readonly sourceData: SourceData
  /** Every source of the config in force, with the hash of its account. */
  accountHashes(): ReadonlyMap<string, string | undefined>
}

/** `known`: the names, where they were read just now. */
export async function listOrphans(
  config: ActiveConfig,
  tools: OrphanTools,
  known?: KnownNames,
): Promise<OrphanView[]> {
  const [sinks, sources] = await Promise.all([
    config.orphans.list(known),
    orphanedSources(tools, known?.sources),
  ])
  return [
    ...sinks.map(({ sink: name, ...counts }): OrphanView => ({ kind: 'sink', name, ...counts })),
    ...sources.map(([name, left]) => sourceView(name, left)),
  ]
}

/** The port of the admin server. */
export function orphansPort(active: () => ActiveConfig, tools: OrphanTools): OrphansPort {
  return {
    list: () => listOrphans(active(), tools),
    async deliveries(name, query) {
      const config = active()
      await config.orphans.check(name)
      return searchDeliveries(config, { ...query, sink: name })
    },
    async move({ name, to, kind, retry, ...order }) {
      const config = active()
      if ((await kindOf(name, kind, config, tools)) === 'sink')
        return config.orphans.move(name, { ...order, to, retry })
      if (!Object.hasOwn(config.config.sources, to)) throw new NotFoundError(`There is no source ${to}.`)
      return once(
        order,
        () => carryOver(name, to, config, tools),
        async () => {
          if (await tools.sourceData.isOld(to)) throw tooOld(to)
        },
      )
    },
    async drop({ name, kind, ...order }) {
      const config = active()
      if ((await kindOf(name, kind, config, tools)) === 'sink') return config.orphans.drop(name, order)
      return once(order, () => dropData(name, tools))
    },
  }
}

async function orphanedSources(
  { names, sourceData, accountHashes }: OrphanTools,
  known?: KnownNames['sources'],
): Promise<[string, SourceDataLeft][]> {
  const configured = accountHashes()
  const others = [...(known ?? (await names.sources()))].filter(([name]) => !configured.has(name))
  if (others.length === 0) return []
  // A source that has not polled yet may still take over the data of another one with the same account.
  const starting = new Set<string | undefined>()
  for (const [name, accountHash] of configured)
    if (!(await sourceData.exists(name))) starting.add(accountHash)
  const unnamed = others
    .filter(([, { accountHash }]) => accountHash === undefined || !starting.has(accountHash))
    .map(([name]) => name)
  const left = await Promise.all(unnamed.map(async (name) => ({ name, left: await sourceData.left(name) })))
  return left.flatMap((each): [string, SourceDataLeft][] => (each.left ? [[each.name, each.left]] : []))
}

function sourceView(name: string, { rows, held, quarantined, lastPollAtMs }: SourceDataLeft): OrphanView {
  return { kind: 'source', name, lastPollAt: isoOrNull(lastPollAtMs), rows, held, quarantined }
}

async function kindOf(
  name: string,
  kind: OrphanKind | undefined,
  config: ActiveConfig,
  tools: OrphanTools,
): Promise<OrphanKind> {
  const source = (await orphanedSources(tools)).some(([each]) => each === name)
  if (kind === 'source' && !source) throw new NotFoundError(`There is no orphan source ${name}.`)
  if (kind !== undefined || !source) return kind ?? 'sink'
  const sink = (await config.orphans.list()).some((each) => each.sink === name)
  if (sink) throw new UserError(`${name} is a sink and a source: say which with kind.`)
  return 'source'
}

async function carryOver(
  from: string,
  to: string,
  { config }: ActiveConfig,
  { sourceData }: OrphanTools,
): Promise<void> {
  const answer = await sourceData.carryOver(from, to, { account: config.sources[to]?.account, replace: true })
  switch (answer) {
    case 'done':
    case 'nothing':
      return
    case 'polled':
      throw new UserError(
        `Source ${from} is still polled, by another process or one that stopped just now; try again once that is over.`,
      )
    case 'taken':
    case 'old':
      throw tooOld(to)
    default:
      return answer satisfies never
  }
}

function tooOld(to: string): UserError {
  return new UserError(
    `Source ${to} has data of its own for more than a day: what it has sent since would be sent again.`,
  )
}

async function dropData(name: string, { names, sourceData }: OrphanTools): Promise<void> {
  const accountHash = (await names.sources()).get(name)?.accountHash
  if ((await sourceData.drop(name, accountHash)) === 'polled')
    throw new UserError(
      `Source ${name} is still polled, by another process or one that stopped just now; try again once that is over.`,
    )
}

/** The data of a source is one item, which is moved or dropped at once. `check` throws what `work` would throw, and changes nothing. */
async function once(
  { limit, atMs = Date.now(), dryRun }: Pick<PortionOrder, 'limit' | 'atMs' | 'dryRun'>,
  work: () => Promise<void>,
  check = async () => {},
) {
  const none = { there: 0, gone: 0, busy: 0, unreadable: 0, atMs, total: 1 }
  if (limit === 0) return { ...none, handled: 0, looked: 0, cursor: 'once' }
  if (dryRun) {
    await check()
    return { ...none, handled: 1, looked: 1, sample: [] }
  }
  await work()
  return { ...none, handled: 1, looked: 1 }
}
