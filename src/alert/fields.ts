import type { Alert } from './alert.ts'
import { isMapping, namesOf, textsOf } from './value.ts'

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

/**
 * The values of a field of an alert: none where it is null or missing, several where it holds several. A matcher compares
 * texts, so every value is one, whatever its type was.
 */
export function alertValues(alert: Alert, field: AlertField): readonly string[] {
  switch (field) {
    case 'source':
      return [alert.source]
    case 'id':
      return [String(alert.id)]
    case 'ruleId':
      return alert.ruleIds
    case 'channel':
      return namesOf(alert.row['channels'])
    case 'kind':
    case 'headline':
    case 'firedAt':
    case 'symbol':
    case 'slug':
    case 'why':
    case 'url':
      return valuesOf(alert[field], alert.row[field])
    case 'payload':
    case 'notifiedAt':
    case 'isRead':
      return textsOf(alert.row[field])
    default:
      return field satisfies never
  }
}

/** A text, as it was read; the values one by one where the row holds several, and none where it holds nothing. */
function valuesOf(read: string | null, raw: unknown): readonly string[] {
  if (isMapping(raw) || Array.isArray(raw)) return textsOf(raw)
  return read === null || (read === '' && raw !== '') ? [] : [read]
}

/** A rule's row, as the API sends it. */
export function ruleFacts(row: Readonly<Record<string, unknown>>): RuleFacts {
  const values = ruleFields.map((field) => [field, textsOf(row[field === 'channel' ? 'channels' : field])])
  return Object.fromEntries(values) as RuleFacts
}
