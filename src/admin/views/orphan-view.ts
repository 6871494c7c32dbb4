import type { OrphanCounts } from '../../delivery/orphans/orphans.ts'

/**
 * What is stored in Redis under a name that the config does not have (any more). The bridge does nothing with it until
 * the name comes back, or an operator moves or drops it.
 */
export type OrphanView = OrphanedSinkView | OrphanedSourceView

interface OrphanedSinkView extends OrphanCounts {
  readonly kind: 'sink'
  readonly name: string
}

interface OrphanedSourceView {
  readonly kind: 'source'
  readonly name: string
  readonly lastPollAt: string | null
  /** Rows of its feed that are stored as seen, and so are not sent again. */
  readonly rows: number
  /** Alerts that were withheld; they can be replayed as long as this data is there. */
  readonly held: number
  readonly quarantined: number
}

export const orphanKinds = ['sink', 'source'] as const
export type OrphanKind = (typeof orphanKinds)[number]

export function describeOrphan(orphan: OrphanView): string {
  const { kind, name } = orphan
  const what = kind === 'sink' ? alertsText(orphan) : dataText(orphan)
  return `${kind} ${name} is not in the config, and ${what} (alert-bridge orphans lists, moves and drops)`
}

function alertsText({ waiting, sending, delayed, dead }: OrphanedSinkView): string {
  const queued = waiting + sending + delayed
  const left = `${queued} ${queued === 1 ? 'alert' : 'alerts'} and ${dead} dead ${dead === 1 ? 'letter' : 'letters'}`
  return `${left} of it are left`
}

function dataText({ rows, held, quarantined }: OrphanedSourceView): string {
  const more = [
    ...(held > 0 ? [`${held} held back`] : []),
    ...(quarantined > 0 ? [`${quarantined} quarantined`] : []),
  ]
  return `its data of ${rows} rows is left${more.length > 0 ? `, with ${more.join(' and ')}` : ''}`
}
