import * as z from 'zod'
import { isCpuLimitSpent, oncePerCheck, withinCpuLimit } from './cpu-limit.ts'
import { type AlertField, alertFields, type RuleField, ruleFields } from './fields.ts'
import { type Match, type Matcher, normaliseSymbol, type PlainMatcher } from './match.ts'
import { type Compiled, compileGlob, compileRegex, patternSize } from './regex.ts'
import type { Steps } from './turns.ts'

/**
 * Matches as they are written, in routes of the config and in silences of the API alike: of each field a text,
 * `{ glob: … }`, `{ regex: … }`, `{ not: … }`, or a list of them. The `meta` marks are read by the config's walkers.
 */
export type WrittenMatch = Readonly<Record<string, unknown>>

const plainMembers = [
  z
    .string()
    .min(1)
    .transform((value): PlainMatcher => ({ op: 'equals', value })),
  z.number().transform((value): PlainMatcher => ({ op: 'equals', value: String(value) })),
] as const

const patternFields = {
  glob: patternField(compileGlob)
    .optional()
    .describe('* is any run of characters, ? any one; all of the text.'),
  regex: patternField(compileRegex)
    .optional()
    .describe(
      'A regular expression in the syntax of RE2 that is looked for in the text: no references back, no looking around.',
    ),
}

const plainPattern = z
  .strictObject(patternFields)
  .refine(isOne, { message: 'expected exactly one of glob and regex', when: isSound })
  .transform((given) => patternOf(given))

/** Members side by side, not nested: then a mistake in one of them is not confused with a value of another type. */
const plainList = z
  .union([...plainMembers, plainPattern, z.array(z.union([...plainMembers, plainPattern])).min(1)])
  .transform((given): readonly PlainMatcher[] => [given].flat())

const pattern = z
  .strictObject({ ...patternFields, not: plainList.optional().describe('None of these.') })
  .refine(isOne, { message: 'expected exactly one of glob, regex and not', when: isSound })
  .transform(
    ({ not, ...given }): Matcher => (not === undefined ? patternOf(given) : { op: 'not', matchers: not }),
  )

const matchersField = z
  .union([...plainMembers, pattern, z.array(z.union([...plainMembers, pattern])).min(1)])
  .transform((given): readonly Matcher[] => [given].flat())
  .meta({
    id: 'matchers',
    fieldKind: 'match',
    neverEmpty: true,
    show: (matchers: readonly Matcher[]) => matchers.map(writeMatcher),
  })

const flags: ReadonlySet<string> = new Set<AlertField | RuleField>([
  'isRead',
  'isActive',
  'isPrivate',
  'mine',
])

const flagField = z
  .boolean('expected true or false')
  .transform((flag): readonly Matcher[] => [{ op: 'equals', value: String(flag) }])
  .meta({ neverEmpty: true, show: isTrue })

/** A function, because a config's route describes its own and a silence's stays as it is. */
export function matchField() {
  return z.strictObject({
    ...fieldsOf(alertFields),
    rule: z
      .strictObject(fieldsOf(ruleFields))
      .refine((rule) => Object.keys(rule).length > 0, {
        message: 'expected at least one field of the rule',
        when: isSound,
      })
      .optional()
      .meta({ neverEmpty: true, description: 'Of the rule that fired, which is looked up.' }),
  })
}

/** Patterns are compiled while the request, and the whole process, waits: so at most this many. Plain texts do not count. */
const patternsMax = 50
/** Of one match: with the slowest ones, comparing one long text takes about a second. Ten lists of sixty names each are less. */
const matchPatternSizeMax = 5_000

/** A match, unchanged, after the check that it is valid and does not match nearly everything by mistake. */
export const writtenMatchField = z.record(z.string(), z.unknown()).superRefine((given, context) => {
  if (patternsIn(given) > patternsMax) {
    context.addIssue({ code: 'custom', message: `expected at most ${patternsMax} patterns in all` })
    return
  }
  if (patternSizeIn(given) > matchPatternSizeMax) {
    context.addIssue({ code: 'custom', message: `expected ${sizeWords(matchPatternSizeMax)}` })
    return
  }
  const { data: match, error } = ownSchema.safeParse(given)
  for (const { path, message } of (error?.issues ?? []).flatMap(nearest))
    context.addIssue({ code: 'custom', path, message })
  for (const path of match === undefined ? [] : wideFields(match))
    context.addIssue({ code: 'custom', path, message: `${wideFieldText}: ${wideFieldRemedy}` })
})

/** How many globs and regular expressions are in it, wherever they stand. */
export function patternsIn(given: unknown): number {
  return patternTexts(given).length
}

/** What they count together. */
export function patternSizeIn(given: unknown): number {
  return patternTexts(given).reduce((sum, pattern) => sum + patternSize(pattern), 0)
}

export function sizeWords(sizeMax: number): string {
  return `at most ${sizeMax} characters of patterns together, with counted repetitions written out`
}

function patternTexts(given: unknown): string[] {
  return patterns(given).flatMap((pattern) => Object.values(pattern))
}

function patterns(given: unknown): Readonly<Record<string, string>>[] {
  if (typeof given !== 'object' || given === null) return []
  return Object.entries(given).flatMap(([key, value]) =>
    (key === 'regex' || key === 'glob') && typeof value === 'string' ? [{ [key]: value }] : patterns(value),
  )
}

/** Undefined when it is none. */
export function parseMatch(written: unknown): Match | undefined {
  return ownSchema.safeParse(written).data
}

/** The same in steps, one for each pattern that is compiled. */
export function* parseMatchInSteps(written: unknown): Steps<Match | undefined> {
  const compiled = new Map<string, unknown>()
  const parse = (given: unknown) =>
    withinCpuLimit(Number.POSITIVE_INFINITY, () => parseMatch(given), compiled)
  for (const pattern of patterns(written)) {
    yield
    parse({ headline: pattern })
  }
  return parse(written)
}

const ownSchema = matchField()

function fieldsOf<F extends string>(fields: readonly F[]) {
  const optional = fields.map((field) => [field, (flags.has(field) ? flagField : matchersField).optional()])
  return Object.fromEntries(optional) as Record<F, z.ZodOptional<typeof matchersField>>
}

function writeMatcher(matcher: Matcher): unknown {
  if (matcher.op === 'equals') return matcher.value
  if (matcher.op === 'not') return { not: matcher.matchers.map(writeMatcher) }
  return { [matcher.op]: matcher.value }
}

function isTrue(matchers: readonly Matcher[]): boolean {
  return matchers.some((matcher) => matcher.op === 'equals' && matcher.value === 'true')
}

interface Pattern {
  readonly glob?: string | undefined
  readonly regex?: string | undefined
}

function patternOf({ glob, regex }: Pattern): PlainMatcher {
  return glob === undefined ? { op: 'regex', value: regex ?? '' } : { op: 'glob', value: glob }
}

const cpuLimitSpent = {
  ok: false,
  problem: 'was not looked at: to get here took too long; fewer or simpler patterns are needed',
} as const

function patternField(compile: (pattern: string) => Compiled) {
  return z
    .string()
    .min(1)
    .superRefine((pattern, context) => {
      // What is compared has its letters made alike, and so has the pattern: it must stay one.
      for (const text of new Set([pattern, normaliseSymbol(pattern)])) {
        const compiled = oncePerCheck(`${compile.name} ${text}`, () =>
          isCpuLimitSpent() ? cpuLimitSpent : compile(text),
        )
        if (compiled.ok) continue
        context.addIssue({ code: 'custom', message: `this pattern ${compiled.problem}` })
        return
      }
    })
}

/**
 * The fields of a match that have a `not` in a list of several, as paths. One of a list is enough, and nearly every alert is
 * not the one thing or not the other: such a list is hardly ever what was meant.
 */
export function wideFields({ rule = {}, ...fields }: Match): string[][] {
  const lists = [
    ...Object.entries(fields).map(([field, matchers]) => ({ path: [field], matchers })),
    ...Object.entries(rule).map(([field, matchers]) => ({ path: ['rule', field], matchers })),
  ]
  return lists
    .filter(({ matchers = [] }) => matchers.length > 1 && matchers.some(({ op }) => op === 'not'))
    .map(({ path }) => path)
}

export const wideFieldText = 'one of this list is enough, so with a not in it nearly every alert matches'
export const wideFieldRemedy = 'write { not: [a, b] } for none of several'

type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>

/** Of a value that may be several things, what is wrong with the one that it comes nearest to. */
function nearest(issue: z.core.$ZodIssue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const near = issue.errors.find((errors) => !errors.some(isOtherType))
  if (near === undefined)
    return [{ path: issue.path, message: 'expected a text, a pattern, or a list of them' }]
  return near.flatMap(nearest).map(({ path, message }) => ({ path: [...issue.path, ...path], message }))
}

function isOtherType({ path, code }: z.core.$ZodIssue): boolean {
  return path.length === 0 && (code === 'invalid_type' || code === 'invalid_union')
}

function isOne(given: object): boolean {
  return Object.values(given).filter((value) => value !== undefined).length === 1
}

/** What is wrong already says enough. */
function isSound({ issues }: { readonly issues: readonly unknown[] }): boolean {
  return issues.length === 0
}
