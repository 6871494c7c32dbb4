import { textsOf } from '../text/value.ts'

/** What routes and silences can ask of: every field of a delivery, and the lasting ones of the rules it came from. */
export const alertFields = [
  'source',
  'id',
  'kind',
  'symbol',
  'slug',
  'headline',
  'why',
  'url',
  'ruleId',
  'channel',
  'payload',
  'firedAt',
  'notifiedAt',
  'isRead',
] as const
export type AlertField = (typeof alertFields)[number]

/** What the bridge does not know of a rule (when it was last evaluated, whether it is armed) changes too often to ask of. */
export const ruleFields = [
  'name',
  'kind',
  'symbol',
  'slug',
  'instrumentId',
  'screen',
  'screenId',
  'owner',
  'channel',
  'config',
  'unit',
  'isActive',
  'isPrivate',
  'mine',
] as const
export type RuleField = (typeof ruleFields)[number]

/** A rule as far as matchers ask: the values of each field, none where it is null. */
export type RuleFacts = Readonly<Record<RuleField, readonly string[]>> & {
  /** Keys of the rule of which not all is known: a long text is cut, a long list left out. */
  readonly cut?: readonly string[]
}

/** A rule's row, as the API sends it. */
export function ruleFacts(row: Readonly<Record<string, unknown>>): RuleFacts {
  const values = ruleFields.map((field) => [field, textsOf(row[field === 'channel' ? 'channels' : field])])
  const cut = textsOf(row['cut'])
  return { ...Object.fromEntries(values), ...(cut.length === 0 ? {} : { cut }) } as RuleFacts
}

/** Finds a rule among these rows of the API, each with its source. */
export function ruleLookup(rows: readonly Readonly<Record<string, unknown>>[]) {
  const facts = new Map(rows.map((row) => [`${row['source']}/${row['id']}`, ruleFacts(row)]))
  return (source: string, ruleId: string) => facts.get(`${source}/${ruleId}`)
}

/** Whether not all of this field is known. */
export function isCut(rule: RuleFacts | undefined, field: string): boolean {
  return rule?.cut?.includes(field === 'channel' ? 'channels' : field) ?? false
}
