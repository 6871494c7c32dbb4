import type { Finding } from '../../admin/views/status-view.ts'
import type { NoticeStore } from '../../store/operators/notices.ts'
import { allOf } from './notice-sender.ts'
import { troubleMs } from './outages.ts'
import type { Troubles } from './troubles.ts'

export interface FindingsNow {
  readonly findings: readonly Pick<Finding, 'text' | 'trouble'>[]
  readonly troubles: readonly string[]
}

interface FindingTroublesOptions {
  readonly findings: () => Promise<FindingsNow | undefined>
  readonly store: Pick<NoticeStore, 'begun'>
  readonly troubles: Troubles
  /** How many alerts a sink has acknowledged since. */
  readonly acknowledgedSince: (sink: string, sinceMs: number) => Promise<number>
}

/**
 * Returns a look at what the status page says is wrong. People are told what was so at two such looks, one after the other: while
 * a config is rolled out, replicas differ for a moment.
 */
export function createFindingLook({
  findings,
  store,
  troubles,
  acknowledgedSince,
}: FindingTroublesOptions): () => Promise<void> {
  let before: readonly string[] = []
  return async () => {
    const now = await findings()
    if (now === undefined) return
    const textOf = new Map(now.findings.flatMap(({ trouble, text }) => (trouble ? [[trouble, text]] : [])))
    const last = before
    before = [...textOf.keys()]
    const begun = await store.begun(now.troubles.map(findingKey))
    await allOf(
      now.troubles.map((trouble) => async () => {
        const text = textOf.get(trouble)
        const sink = /^(?:late|refuses):(.+)$/.exec(trouble)?.[1]
        const about = { trouble, ...(sink === undefined ? {} : { sink }) }
        const key = findingKey(trouble)
        const sinceMs = begun.get(key)
        if (text === undefined && !last.includes(trouble) && sinceMs !== undefined) {
          // Alerts that are given up on, and dead letters that are dropped or put back for a digest, show no sink that takes alerts.
          if (sink !== undefined && (await acknowledgedSince(sink, sinceMs)) === 0) return
          await troubles.end([key], { kind: 'trouble_over', text: '', ...about })
        }
        if (text !== undefined && last.includes(trouble))
          await troubles.begin(key, troubleMs, { kind: 'trouble', text, ...about })
      }),
    )
  }
}

function findingKey(trouble: string): string {
  return `finding:${trouble}`
}
