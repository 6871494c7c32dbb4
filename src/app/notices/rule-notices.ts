import type { SilentRule } from '../../routing/rule-health.ts'
import type { Notice } from './notices.ts'

/** What people are to be notified of after a reading of the rules, compared with what they know. Pure. */
export interface RulesReport {
  readonly silent: readonly SilentRule[]
  /** Ids of all rules that were read. */
  readonly ids: readonly string[]
  /** The reading shows every rule there is, so that one that it does not show is gone. */
  readonly isWhole: boolean
}

/** People are notified of no more silent rules of one source at the same time; of others, the status has the count. */
const reportedMax = 1_000
/** A notice names so many. */
const namedMax = 10
const nameCharsMax = 60

interface RuleNews {
  /** What people know afterwards: id → name. */
  readonly names: Readonly<Record<string, string>>
  readonly notices: readonly Notice[]
}

/** undefined where nothing has changed. */
export function ruleNews(
  sourceName: string,
  reported: Readonly<Record<string, string>>,
  { silent, ids, isWhole }: RulesReport,
): RuleNews | undefined {
  const [read, dead] = [new Set(ids), new Map(silent.map((rule) => [rule.id, rule]))]
  const isOver = (id: string) => !dead.has(id) && (isWhole || read.has(id))
  const over = Object.entries(reported).filter(([id]) => isOver(id))
  const known = Object.entries(reported).filter(([id]) => !isOver(id))
  const begun = silent
    .filter(({ id }) => !Object.hasOwn(reported, id))
    .slice(0, Math.max(0, reportedMax - known.length))
  if (over.length === 0 && begun.length === 0) return undefined
  const ended = over.map(([id, name]) =>
    read.has(id) ? labelOf(id, name) : `${labelOf(id, name)} (deleted)`,
  )
  const notices: Notice[] = []
  if (begun.length > 0) {
    const rules = begun.slice(0, namedMax).map(({ id, name, text }) => `${labelOf(id, name)}: ${text}`)
    notices.push({ kind: 'rules_silent', sourceName, count: begun.length, rules })
  }
  if (ended.length > 0)
    notices.push({
      kind: 'rules_well',
      sourceName,
      count: ended.length,
      rules: ended.slice(0, namedMax),
    })
  return {
    names: Object.fromEntries([...known, ...begun.map(({ id, name }) => [id, name] as const)]),
    notices,
  }
}

function labelOf(id: string, name: string): string {
  return name === '' ? id : `${id} ${[...name].slice(0, nameCharsMax).join('')}`
}
