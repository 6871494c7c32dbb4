import type { QuarantinePort, QuarantineSelection } from '../../admin/ports.ts'
import type { Retried } from '../../intake/quarantine.ts'
import { NotFoundError } from '../../lib/errors.ts'
import type { QuarantineCounts, Quarantined } from '../../store/walk/quarantine.ts'
import { quarantinedRowOf } from './views.ts'

/** The rows of one source that could not be read, for an operator. */
export interface Quarantine {
  list(limit: number): Promise<readonly Quarantined[]>
  find(keys: readonly string[]): Promise<readonly Quarantined[]>
  retry(rows: readonly Quarantined[]): Promise<Retried>
  drop(keys: readonly string[]): Promise<number>
  dropAll(throughMs?: number): Promise<number>
  newestMs(): Promise<number>
  counts(): Promise<QuarantineCounts>
}

interface QuarantineOwner {
  readonly name: string
  readonly quarantine: Quarantine
}

/** The quarantines of all sources as one. */
export function quarantinePort(sources: readonly QuarantineOwner[]): QuarantinePort {
  const ownersIn = ({ source }: QuarantineSelection) => {
    if (source === undefined) return sources
    const owners = sources.filter(({ name }) => name === source)
    if (owners.length === 0) throw new NotFoundError(`There is no source ${source}.`)
    return owners
  }
  return {
    async list({ limit, ...selection }) {
      const rows = ownersIn(selection).map(async ({ name, quarantine }) => {
        const found = await quarantine.list(limit)
        return found.map((each) => quarantinedRowOf(name, each))
      })
      const all = (await Promise.all(rows)).flat()
      return all.sort((a, b) => b.seenAt.localeCompare(a.seenAt)).slice(0, limit)
    },
    async retry(selection) {
      const total = { retried: 0, unreadable: 0 }
      for (const { name, quarantine } of ownersIn(selection)) {
        const keys = keysOf(selection, name)
        const rows = await (keys === undefined ? quarantine.list(listMax) : quarantine.find(keys))
        const { sent, unreadable } = await quarantine.retry(rows)
        total.retried += sent
        total.unreadable += unreadable
      }
      return total
    },
    async drop({ keepThrough, ...selection }) {
      const owners = ownersIn(selection)
      const newestMs = await Promise.all(owners.map(({ quarantine }) => quarantine.newestMs()))
      const throughMs = await keepThrough?.(Math.max(0, ...newestMs))
      let dropped = 0
      for (const { name, quarantine } of owners) {
        const keys = keysOf(selection, name)
        dropped += await (keys === undefined ? quarantine.dropAll(throughMs) : quarantine.drop(keys))
      }
      return dropped
    },
  }
}

/** More rows than one source keeps. */
const listMax = 10_000

/** The keys of this source among `SOURCE.KEY`; undefined when the selection has no ids, which means all rows. */
function keysOf({ ids }: QuarantineSelection, source: string): string[] | undefined {
  return ids?.flatMap((id) => (id.startsWith(`${source}.`) ? [id.slice(source.length + 1)] : []))
}
