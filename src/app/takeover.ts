import type { NameStore } from '../store/names.ts'
import type { SourceData } from '../store/source-data.ts'
import type { Logger } from '../telemetry/log.ts'

/**
 * What a source does before its first poll: it writes down its name and its account, and when it is the new name of one
 * that left the config, it takes over the memory of that one. Then the units of the day count on, nothing is sent again,
 * and nothing that fired meanwhile is passed over.
 */
export interface TakeOverOptions {
  readonly source: string
  /** Every source of the config in force, with what its account is known by; undefined where its token cannot be read. */
  readonly marks: () => ReadonlyMap<string, string | undefined>
  readonly names: NameStore
  readonly sourceData: SourceData
  readonly log: Logger
  /** What the config calls the account, where it is shared. */
  readonly account: string | undefined
  readonly onRenamed: (from: string, to: string) => void
}

/** Resolves to why the source has to wait, or undefined once it may poll. */
export async function takeOver(options: TakeOverOptions): Promise<string | undefined> {
  const { source, marks, names, sourceData } = options
  const mark = marks().get(source)
  if (mark !== undefined && !(await sourceData.exists(source))) {
    const waitsFor = await carryOver(options, mark)
    if (waitsFor !== undefined)
      return `the same account is still polled as source ${waitsFor}, by this process or another`
  }
  if (mark !== undefined) await countDropped(options, mark)
  await names.addSource(source, mark === undefined ? {} : { mark })
  return undefined
}

/** Resolves to the name under which the account is still polled, or undefined. */
async function carryOver(options: TakeOverOptions, mark: string): Promise<string | undefined> {
  const { source, account, names, sourceData, log, onRenamed } = options
  for (let tries = 1; tries <= triesMax; tries += 1) {
    const { before, ambiguous } = await predecessors(options, mark)
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
    const carried = await sourceData.carryOver(from, source, { mark, account })
    if (carried === 'polled') return from
    if (carried === 'done') {
      log.warn({ source, from }, 'this source has a new name: it goes on with the data of the old one')
      onRenamed(from, source)
      return undefined
    }
    // A replica whose config has yet another name for the account was faster: that name is the one to follow now.
    if ((await names.sources()).has(from)) return undefined
  }
  return undefined
}

/** Replicas that give one account different names at the same moment, at most. */
const triesMax = 5

/** What a source of this account had spent before it was dropped is spent, whatever the name that it comes back by. */
async function countDropped({ source, names, sourceData }: TakeOverOptions, mark: string): Promise<void> {
  for (const [name, known] of await names.sources())
    if (known.dropped && known.mark === mark && name !== source) await sourceData.countWith(name, source)
}

/** Sources of this account that are in no config, and whether it is open which one goes on as which. */
async function predecessors(
  { source, marks, names, sourceData }: TakeOverOptions,
  mark: string,
): Promise<{ before: string[]; ambiguous: boolean }> {
  const configured = marks()
  const known = [...(await names.sources())]
  const before = known
    .filter(([name, it]) => !configured.has(name) && it.mark === mark && !it.dropped)
    .map(([name]) => name)
  if (before.length === 0) return { before, ambiguous: false }
  const others = [...configured]
    .filter(([name, own]) => name !== source && own === mark)
    .map(([name]) => name)
  // Others of this account that came after it had gone are new names too.
  const [gone = ''] = before
  const settled = await Promise.all(others.map((name) => sourceData.overlapped(name, gone)))
  return { before, ambiguous: before.length > 1 || settled.includes(false) }
}
