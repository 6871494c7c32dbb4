import type { Alert } from '../alert.ts'
import { isObject } from '../json/json.ts'
import { asciiDigits } from '../text/text.ts'
import { namesOf, textsOf } from '../text/value.ts'
import { type AlertField, alertFields, isCut, type RuleFacts, type RuleField, ruleFields } from './fields.ts'
import { type Compiled, compileGlob, compileRegex, isFound, type Program } from './regex.ts'
import type { Steps } from './turns.ts'

/**
 * Whether an alert is what a route or a silence asks for. Pure. Fields are joined by AND, the matchers of one field by
 * OR; a field holds any number of values, and a matcher wants one of them (`not`: none of them). What is asked of the
 * rule must hold for one and the same rule of the alert. A rule that nobody knows is neither a match nor a miss, nor is one that
 * only misses by fields that are not kept whole.
 */
export type Matcher = PlainMatcher | { readonly op: 'not'; readonly matchers: readonly PlainMatcher[] }
export type PlainMatcher = { readonly op: 'equals' | 'glob' | 'regex'; readonly value: string }

export type Match = { readonly [F in AlertField]?: readonly Matcher[] | undefined } & {
  readonly rule?: RuleMatch | undefined
}
type RuleMatch = { readonly [F in RuleField]?: readonly Matcher[] | undefined }

/** The rule of this id; undefined when it is not known. */
export type RuleLookup = (source: string, ruleId: string) => RuleFacts | undefined

/** Why an alert did not match: what the field held, and what was wanted of it. */
export interface Miss {
  readonly field: AlertField | `rule.${RuleField}`
  readonly found: readonly string[]
  readonly wanted: readonly string[]
}

export type Matched =
  | { readonly kind: 'matches' }
  /** Every field that kept it from matching. */
  | { readonly kind: 'misses'; readonly misses: readonly Miss[] }
  /** All but the rule matches, and these of its rules are not known. */
  | { readonly kind: 'rule_unknown'; readonly ruleIds: readonly string[] }

export function* matchAlert(alert: Alert, match: Match, ruleOf: RuleLookup): Steps<Matched> {
  const misses: Miss[] = []
  for (const field of alertFields) {
    const matchers = match[field]
    if (matchers === undefined || (yield* satisfiesAll(comparedOf(alert, field), matchers, field))) continue
    misses.push({ field, found: alertValues(alert, field), wanted: matchers.map(describeMatcher) })
  }
  const { rule } = match
  const ofRule = rule === undefined || !asksOfRule(match) ? matches : yield* matchRules(alert, rule, ruleOf)
  if (ofRule.kind === 'misses') return { kind: 'misses', misses: [...misses, ...ofRule.misses] }
  return misses.length > 0 ? { kind: 'misses', misses } : ofRule
}

/** Whether anything is asked of the rule, so that it must be known. */
export function asksOfRule({ rule }: Match): boolean {
  return rule !== undefined && ruleFields.some((field) => rule[field] !== undefined)
}

/** Whether the match takes everything. */
export function asksNothing(match: Match): boolean {
  return alertFields.every((field) => match[field] === undefined) && !asksOfRule(match)
}

/** How people read a matcher. */
export function describeMatcher(matcher: Matcher): string {
  switch (matcher.op) {
    case 'equals':
      return matcher.value
    case 'glob':
      return `glob ${matcher.value}`
    case 'regex':
      return `regex ${matcher.value}`
    case 'not':
      return `not ${matcher.matchers.map(describeMatcher).join(' or ')}`
  }
}

/**
 * The form in which symbols and texts for people are compared, for comparing only: what is shown stays as it came.
 * Arabic yeh and kaf are written as Persian ones and digits as ASCII, because keyboards mix them; invisible characters
 * (the zero-width non-joiner, bidi marks) are dropped, because nobody can see why a symbol with one does not match.
 */
export function normaliseSymbol(text: string): string {
  return asciiDigits(text.replace(invisible, '').normalize('NFKC'))
    .replace(/[\u064a\u0649]/g, '\u06cc')
    .replace(/\u0643/g, '\u06a9')
    .trim()
}

/** Zero-width characters and bidi controls. */
const invisible = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g

const matches: Matched = { kind: 'matches' }

/** Written by people for people: letters that look alike are alike, and so are digits, also of an id that people type. The others are names. */
const texts: ReadonlySet<string> = new Set<AlertField | RuleField>([
  'symbol',
  'headline',
  'why',
  'payload',
  'name',
  'screen',
  'owner',
  'config',
  ...(['id', 'ruleId', 'instrumentId', 'screenId'] as const),
])

/** Rules of one alert that are looked at; any further one counts as not known. */
const rulesMax = 200

function* matchRules(alert: Alert, match: RuleMatch, ruleOf: RuleLookup): Steps<Matched> {
  const all = once(rulesOfAlerts, alert, 'ruleId', () => [...new Set(alert.ruleIds)])
  // Asked once: a rule may be read meanwhile, and one that was not compared has not missed.
  const facts = new Map(all.slice(0, rulesMax).map((id) => [id, ruleOf(alert.source, id)]))
  const known = [...facts.values()].filter((rule) => rule !== undefined)
  // An alert of no rule is one of a rule without any values: `not` holds, and nothing else does.
  let first: Miss[] | undefined
  const unsure = new Set<RuleFacts | undefined>([undefined])
  for (const rules of facts.size === 0 ? [[]] : known.map((rule) => [rule])) {
    const misses = yield* missesOf(rules, match)
    if (misses.length === 0) return matches
    first ??= misses
    if (misses.every(({ field }) => isCut(rules[0], field.slice('rule.'.length)))) unsure.add(rules[0])
  }
  const unknown = all.filter((id) => unsure.has(facts.get(id)))
  if (unknown.length > 0) return { kind: 'rule_unknown', ruleIds: unknown }
  const together = yield* missesOf(known, match)
  return { kind: 'misses', misses: together.length > 0 ? together : (first ?? []) }
}

function* missesOf(rules: readonly RuleFacts[], match: RuleMatch): Steps<Miss[]> {
  const misses: Miss[] = []
  for (const field of ruleFields) {
    const matchers = match[field]
    if (matchers === undefined) continue
    const found = rules.flatMap((rule) => rule[field])
    if (yield* satisfies(field, found, matchers)) continue
    misses.push({ field: `rule.${field}`, found, wanted: matchers.map(describeMatcher) })
  }
  return misses
}

/**
 * The values of a field of an alert: none where it is null or missing, several where it holds several. A matcher compares
 * texts, so every value is one, whatever its type was.
 */
export function alertValues(alert: Alert, field: AlertField): readonly string[] {
  return once(values, alert, field, () => valuesIn(alert, field))
}

function valuesIn(alert: Alert, field: AlertField): readonly string[] {
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
      return textValues(alert[field], alert.row[field])
    case 'payload':
    case 'notifiedAt':
    case 'isRead':
      return textsOf(alert.row[field])
    default:
      return field satisfies never
  }
}

/** Whether these values of a field are what the matcher, or one of them, wants. */
export function satisfies(field: string, values: readonly string[], matchers: Matchers): Steps<boolean> {
  return satisfiesAll(comparable(field, values), matchers, field)
}

function* satisfiesAll(values: readonly string[], matchers: Matchers, field: string): Steps<boolean> {
  const { texts, patterns, nots } = yield* wantedBy(matchers, field)
  yield
  if (texts.size > 0 && values.some((value) => texts.has(value))) return true
  for (const pattern of patterns)
    for (const value of values) {
      yield
      if (isFound(pattern, value)) return true
    }
  for (const not of nots) if (!(yield* satisfiesAll(values, not, field))) return true
  return false
}

/** A text, as it was read; the values one by one where the row holds several, and none where it holds nothing. */
function textValues(read: string | null, raw: unknown): readonly string[] {
  if (typeof raw === 'string' || isObject(raw)) return textsOf(raw)
  return read === null || (read === '' && raw !== '') ? [] : [read]
}

/**
 * Of one field, so many values are compared, and so much text together: a row of the feed may be a list of as many as a page
 * holds, and each is compared with each pattern.
 */
export const valuesMax = 2_000
export const fieldCharsMax = 50_000

function comparable(field: string, values: readonly string[]): readonly string[] {
  const compared: string[] = []
  let chars = 0
  // The shortest first, so that a large value hides no other.
  for (const value of values.slice(0, valuesMax).toSorted((a, b) => a.length - b.length)) {
    chars += value.length
    if (chars > fieldCharsMax && compared.length > 0) break
    compared.push(comparableText(field, value.slice(0, fieldCharsMax)))
  }
  return compared
}

/** Whether all of the fields with a `not` is compared, of the alert and its rules: else what the match names may be in the rest. */
export function isComparedWhole(alert: Alert, match: Match, ruleOf: RuleLookup): boolean {
  const { rule = {} } = match
  const asked = ruleFields.filter((field) => rule[field]?.some(isNot))
  const ids = asked.length === 0 ? [] : alert.ruleIds.slice(0, rulesMax)
  return (
    alertFields.every((field) => !match[field]?.some(isNot) || isWhole(alertValues(alert, field))) &&
    ids.every((id) => !asked.some((field) => isCut(ruleOf(alert.source, id), field)))
  )
}

function isNot({ op }: Matcher): boolean {
  return op === 'not'
}

function isWhole(values: readonly string[]): boolean {
  return values.length <= valuesMax && values.reduce((sum, { length }) => sum + length, 0) <= fieldCharsMax
}

function comparableText(field: string, text: string): string {
  return texts.has(field) ? normaliseSymbol(text) : text.trim()
}

/** An alert is compared with hundreds of routes and silences: what it takes of its row is taken once. */
type OfAlerts = WeakMap<Alert, Map<AlertField, readonly string[]>>
const values: OfAlerts = new WeakMap()
const compared: OfAlerts = new WeakMap()
const rulesOfAlerts: OfAlerts = new WeakMap()

function comparedOf(alert: Alert, field: AlertField): readonly string[] {
  return once(compared, alert, field, () => comparable(field, alertValues(alert, field)))
}

function once(known: OfAlerts, alert: Alert, field: AlertField, find: () => readonly string[]) {
  const own = known.get(alert) ?? new Map<AlertField, readonly string[]>()
  known.set(alert, own)
  const found = own.get(field) ?? find()
  own.set(field, found)
  return found
}

type Matchers = Matcher | readonly Matcher[]

/** The matchers of one field in the form in which values are compared with them. */
interface Wanted {
  readonly field: string
  readonly texts: ReadonlySet<string>
  readonly patterns: readonly Program[]
  readonly nots: readonly (readonly PlainMatcher[])[]
}

/** They live as long as their config or silence: every alert is compared with them, and a list may name thousands. */
const wanted = new WeakMap<Matchers, Wanted>()

function* wantedBy(matchers: Matchers, field: string): Steps<Wanted> {
  const known = wanted.get(matchers)
  if (known?.field === field) return known
  const texts = new Set<string>()
  const patterns: Program[] = []
  const nots: (readonly PlainMatcher[])[] = []
  for (const matcher of [matchers].flat()) {
    if (matcher.op === 'not') {
      nots.push(matcher.matchers)
      continue
    }
    const value = comparableText(field, matcher.value)
    if (matcher.op !== 'equals') yield
    const compiled = matcher.op === 'equals' ? undefined : compile(matcher.op, value)
    if (compiled === undefined) texts.add(value)
    else if (compiled.ok) patterns.push(compiled.program)
  }
  const made = { field, texts, patterns, nots }
  wanted.set(matchers, made)
  return made
}

function compile(op: 'glob' | 'regex', pattern: string): Compiled {
  return op === 'glob' ? compileGlob(pattern) : compileRegex(pattern)
}
