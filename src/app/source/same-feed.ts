import type { SourceConfig } from '../../config/schema.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { FeedPage } from '../../walk/page.ts'

/**
 * Notices that two sources show the same alerts, as two tokens of one account do: each of them would spend the whole
 * budget of the account. Only what this process polls itself is compared.
 */
export interface SameFeed {
  /** Takes the first page of a source. Logs once what `noteOf` returns. */
  saw(source: string, page: FeedPage): void
  /** A text for people, or undefined when there is no such source. */
  noteOf(source: string): string | undefined
}

interface SameFeedOptions {
  /** Of the config in force. */
  readonly sources: () => Readonly<Record<string, Pick<SourceConfig, 'account'>>>
  readonly log: Logger
}

const rowsMax = 20
/** Two accounts may use the same ids. So many alerts with the same id, second and headline come from one account. */
const commonMin = 3

export function createSameFeed({ sources, log }: SameFeedOptions): SameFeed {
  const heads = new Map<string, ReadonlySet<string>>()
  const reported = new Set<string>()
  const duplicateOf = (source: string): string | undefined => {
    const own = [...(heads.get(source) ?? [])]
    const isDuplicate = (head: ReadonlySet<string>) =>
      own.filter((each) => head.has(each)).length >= commonMin
    return [...heads].find(([name, head]) => name !== source && name in sources() && isDuplicate(head))?.[0]
  }
  const noteOf = (source: string): string | undefined => {
    const other = duplicateOf(source)
    if (other === undefined) return undefined
    const account = sources()[source]?.account
    if (account !== undefined && account === sources()[other]?.account) return undefined
    return `shows the same alerts as source ${other}: both spend the units of one account; give both the same account: NAME`
  }
  return {
    saw(source, { rows }) {
      const alerts = rows.flatMap((row) => (row.ok ? [row.alert] : [])).slice(0, rowsMax)
      const head = alerts.map(({ id, firedAt, headline }) => JSON.stringify([id, firedAt, headline]))
      heads.set(source, new Set(head))
      const note = noteOf(source)
      if (note === undefined) reported.delete(source)
      else if (!reported.has(source)) log.warn({ source }, note)
      if (note !== undefined) reported.add(source)
    },
    noteOf,
  }
}
