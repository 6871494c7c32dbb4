import { isMapping } from '../json/json.ts'
import { JsonNumber } from '../json/json-number.ts'
import { cut, oneLine } from './text.ts'

/**
 * Any JSON value as text: a field of a row of the feed may hold what its documentation does not say. None of this throws,
 * and a text is taken as it is.
 */

/** Each entry of a list as text; of a mapping, `key=value`; one text of anything else that is there. */
export function textsOf(value: unknown): readonly string[] {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value.map(textOf)
  if (!isMapping(value)) return [textOf(value)]
  return Object.entries(value).map(([key, inner]) => `${key}=${textOf(inner)}`)
}

/** Each entry of a list of names; some programs write a list as a mapping of its places: there the values are meant. */
export function namesOf(value: unknown): readonly string[] {
  return textsOf(isMapping(value) ? Object.values(value) : value).filter((name) => name !== '')
}

/** All of it as one text; null where there is nothing. */
export function wholeText(value: unknown, between = ', '): string | null {
  const texts = textsOf(value)
  return texts.length === 0 ? null : texts.join(between)
}

/** The fields of a row of the feed that people are shown and routes ask of, as texts; undefined where it is no JSON object. */
export function shownFields(row: unknown) {
  if (!isMapping(row)) return undefined
  return {
    row,
    kind: wholeText(row['kind']) ?? '',
    symbol: wholeText(row['symbol']),
    slug: wholeText(row['slug']),
    headline: wholeText(row['headline']) ?? '',
    // An address is a text, or it is none.
    url: typeof row['url'] === 'string' ? row['url'] : '',
    why: wholeText(row['why'], '\n'),
    ruleIds: namesOf(row['ruleIds']),
    firedAt: wholeText(row['firedAt']) ?? '',
  }
}

const foundCharsMax = 60

/** What was found where something else was expected: enough to see what it was. */
export function foundText(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (isMapping(value)) return 'an object'
  return cut(oneLine(JSON.stringify(value)), foundCharsMax)
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (value instanceof JsonNumber) return String(value)
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    // JSON.parse takes a nesting that JSON.stringify cannot give back.
    return ''
  }
}
