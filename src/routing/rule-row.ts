import { ruleFields } from '../alert/match/fields.ts'
import { cut } from '../alert/text/text.ts'
import type { AlertRule } from '../feed/wire.ts'

/** What is kept of a rule, in Redis and in memory: what matchers ask of, and what shows whether it may fire. */
export type RuleRow = Readonly<Record<string, unknown>>

const stateFields = ['disabledReason', 'isArmed', 'lastEvaluatedAt', 'nextEvaluationAt', 'lastFiredAt']
/** There may be thousands of rules. A longer text is cut, also for matchers; a list or an object that is longer as JSON is left out. */
const textCharsMax = 500
const jsonCharsMax = 4_000

export function ruleRowOf(rule: AlertRule): RuleRow {
  const kept = ['id', 'channels', ...ruleFields, ...stateFields].filter((key) => key in rule)
  const values = kept.map((key) => [key, short(rule[key])] as const)
  const cut = values.filter(([key, value]) => value !== rule[key]).map(([key]) => key)
  const row = Object.fromEntries(values.filter(([, value]) => value !== undefined))
  return cut.length === 0 ? row : { ...row, cut }
}

/**
 * Rules that were known before and that a reading of all does not show, for the first time: they are kept until the next one.
 * An empty list may be a mistake of the API, and an alert may be the last one of a rule that was deleted since.
 */
export function newlyUnseenIn(before: ReadonlyMap<string, RuleRow>, read: readonly AlertRule[]): RuleRow[] {
  const seen = new Set(read.map(({ id }) => String(id)))
  return [...before]
    .filter(([id, row]) => !seen.has(id) && row['unseen'] !== true)
    .map(([, row]) => ({ ...row, unseen: true }))
}

function short(value: unknown): unknown {
  if (typeof value === 'string') return cut(value, textCharsMax)
  if (typeof value !== 'object' || value === null) return value
  return JSON.stringify(value).length <= jsonCharsMax ? value : undefined
}
