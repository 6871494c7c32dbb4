import type { Alert } from './alert.ts'

/**
 * Whether an alert is what a route asks for. Pure. A matcher is data with an `op`, so that a glob, a regex or a `not`
 * is a new member of the union and a new case in `satisfies`, and nothing else moves; the same matchers serve whatever
 * else picks alerts (silences).
 */
export type Matcher = { readonly op: 'equals'; readonly value: string }

export const matchFields = ['kind', 'symbol', 'ruleId', 'source'] as const
export type MatchField = (typeof matchFields)[number]

/** Fields are joined by AND, the matchers of one field by OR. A field that is absent takes everything. */
export type Match = { readonly [F in MatchField]?: readonly Matcher[] | undefined }

/** Why an alert did not match: what the field held, and what was wanted of it. */
export interface Miss {
  readonly field: MatchField
  readonly found: readonly string[]
  readonly wanted: readonly string[]
}

/** Empty when the alert matches; else every field that kept it from matching, in the order of `matchFields`. */
export function missesOf(alert: Alert, match: Match): readonly Miss[] {
  const misses: Miss[] = []
  for (const field of matchFields) {
    const matchers = match[field]
    if (matchers === undefined) continue
    const found = valuesOf(alert, field)
    if (found.some((value) => matchers.some((matcher) => satisfies(field, value, matcher)))) continue
    misses.push({ field, found, wanted: matchers.map(describeMatcher) })
  }
  return misses
}

/** How people read a matcher. */
export function describeMatcher(matcher: Matcher): string {
  return matcher.value
}

/**
 * The form in which symbols are compared, for comparing only: what is shown stays as it came. Arabic yeh and kaf are
 * written as Persian ones and digits as ASCII, because keyboards mix them; invisible characters (the zero-width
 * non-joiner, bidi marks) are dropped, because nobody can see why a symbol with one does not match.
 */
export function normaliseSymbol(text: string): string {
  return text
    .replace(invisible, '')
    .normalize('NFKC')
    .replace(/[\u064a\u0649]/g, '\u06cc')
    .replace(/\u0643/g, '\u06a9')
    .replace(/[\u06f0-\u06f9]/g, (digit) => String(digit.charCodeAt(0) - 0x06f0))
    .replace(/[\u0660-\u0669]/g, (digit) => String(digit.charCodeAt(0) - 0x0660))
    .trim()
}

/** Zero-width characters and bidi controls. */
const invisible = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g

function valuesOf(alert: Alert, field: MatchField): readonly string[] {
  switch (field) {
    case 'kind':
      return [alert.kind]
    case 'symbol':
      return alert.symbol === null ? [] : [alert.symbol]
    case 'ruleId':
      return alert.ruleIds
    case 'source':
      return [alert.source]
  }
}

function satisfies(field: MatchField, value: string, matcher: Matcher): boolean {
  switch (matcher.op) {
    case 'equals':
      return comparable(field, value) === comparable(field, matcher.value)
  }
}

function comparable(field: MatchField, text: string): string {
  return field === 'symbol' ? normaliseSymbol(text) : text.trim()
}
