import type { Alert } from './alert.ts'

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
export type RuleFacts = Readonly<Record<RuleField, readonly string[]>>

/** The values of a field of an alert; none where it is null. */
export function alertValues(alert: Alert, field: AlertField): readonly string[] {
  switch (field) {
    case 'source':
    case 'kind':
    case 'headline':
    case 'url':
    case 'firedAt':
      return [alert[field]]
    case 'id':
      return [String(alert.id)]
    case 'symbol':
    case 'slug':
    case 'why':
      return alert[field] === null ? [] : [alert[field]]
    case 'ruleId':
      return alert.ruleIds
    case 'channel':
      return textsOf(alert.row['channels'])
    case 'payload':
    case 'notifiedAt':
    case 'isRead':
      return textsOf(alert.row[field])
    default:
      return field satisfies never
  }
}

/** A rule's row, as the API sends it. */
export function ruleFacts(row: Readonly<Record<string, unknown>>): RuleFacts {
  const values = ruleFields.map((field) => [field, textsOf(row[field === 'channel' ? 'channels' : field])])
  return Object.fromEntries(values) as RuleFacts
}

/** Each entry of a list as text; of a mapping, `key=value`; one text of anything else that is there. */
function textsOf(value: unknown): readonly string[] {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value.map(textOf)
  if (typeof value !== 'object') return [textOf(value)]
  return Object.entries(value).map(([key, inner]) => `${key}=${textOf(inner)}`)
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    // JSON.parse takes a nesting that JSON.stringify cannot give back.
    return ''
  }
}
