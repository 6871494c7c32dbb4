import type { UnsentNotice } from '../../store/operators/unsent-notices.ts'
import type { NameStore } from '../../store/source/names.ts'
import type { SourceData } from '../../store/source/source-data.ts'
import type { Logger } from '../../telemetry/log.ts'

/**
 * What a source does before its first poll: it stores its name and the hash of its account. When it is the new name of a
 * source that left the config, it takes over the data of that one: then the units of the day still count, nothing is sent
 * again, and nothing that fired meanwhile is passed over.
 */
interface TakeOverOptions {
  readonly source: string
  /** Every source of the config in force, with the hash of its account; undefined when its token cannot be read. */
  readonly accountHashes: () => ReadonlyMap<string, string | undefined>
  readonly names: NameStore
  readonly sourceData: SourceData
  readonly log: Logger
  /** The name that the config gives the account, if sources share it. */
  readonly account: string | undefined
  /** The notice of it for operators; undefined where there are none. */
  readonly noticeOf: (from: string, to: string) => UnsentNotice | undefined
}

/** Resolves to the reason why the source has to wait, or to undefined when it may poll. */
export async function takeOver(options: TakeOverOptions): Promise<string | undefined> {
  const { source, accountHashes, names, sourceData } = options
  const accountHash = accountHashes().get(source)
  if (accountHash !== undefined && !(await sourceData.exists(source))) {
    const waitsFor = await carryOver(options, accountHash)
    if (waitsFor !== undefined)
      return `the same account is still polled as source ${waitsFor}, by this process or another`
  }
  if (accountHash !== undefined) await countDropped(options, accountHash)
  await names.addSource(source, { accountHash })
  return undefined
}

/** Resolves to the name under which the account is still polled, or undefined. */
async function carryOver(options: TakeOverOptions, accountHash: string): Promise<string | undefined> {
  const { source, account, names, sourceData, log, noticeOf } = options
  for (let tries = 1; tries <= triesMax; tries += 1) {
    const { before, ambiguous } = await predecessors(options, accountHash)
    const [from] = before
    if (from === undefined) return undefined
    if (ambiguous) {
      for (const each of before) await sourceData.copyUnits(each, source)
      log.warn(
        { source, before },
        'sources of the same account left the config, and it is not clear which one this is: alert-bridge orphans move carries over the data of one',
      )
      return undefined
    }
    const notice = noticeOf(from, source)
    const carried = await sourceData.carryOver(from, source, { accountHash, account, notice })
    if (carried === 'polled') return from
    if (carried === 'done') {
      log.warn({ source, from }, 'this source has a new name: it goes on with the data of the old one')
      return undefined
    }
    // A replica whose config has a third name for the account was faster: now the data is under that name, so try again.
    if ((await names.sources()).has(from)) return undefined
  }
  return undefined
}

/** At most so many replicas give one account different names at the same moment. */
const triesMax = 5

/** Also counts the units that another source of this account had spent before its data was dropped. */
async function countDropped(
  { source, names, sourceData }: TakeOverOptions,
  accountHash: string,
): Promise<void> {
  for (const [name, known] of await names.sources())
    if (known.dropped && known.accountHash === accountHash && name !== source)
      await sourceData.countWith(name, source)
}

/** Sources of this account that are not in the config, and whether it is unclear which of them this source replaces. */
async function predecessors(
  { source, accountHashes, names, sourceData }: TakeOverOptions,
  accountHash: string,
): Promise<{ before: string[]; ambiguous: boolean }> {
  const configured = accountHashes()
  const known = [...(await names.sources())]
  const before = known
    .filter(([name, it]) => !configured.has(name) && it.accountHash === accountHash && !it.dropped)
    .map(([name]) => name)
  if (before.length === 0) return { before, ambiguous: false }
  const others = [...configured]
    .filter(([name, own]) => name !== source && own === accountHash)
    .map(([name]) => name)
  // Other sources of this account that started after it had left the config may be its new name too.
  const [gone = ''] = before
  const settled = await Promise.all(others.map((name) => sourceData.overlapped(name, gone)))
  return { before, ambiguous: before.length > 1 || settled.includes(false) }
}
