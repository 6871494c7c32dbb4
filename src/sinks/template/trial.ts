import { parseRow } from '../../alert/alert.ts'
import { contextKinds } from '../../alert/context.ts'
import { isCpuLimitSpent } from '../../alert/match/cpu-limit.ts'
import { sampleAlert, sampleContext } from '../../alert/sample.ts'
import { toError } from '../../lib/errors.ts'
import type { Parcel } from '../sink.ts'

/**
 * The alerts that every template is tried with at the check of the config: what the feed documents, what it does not
 * exclude, and what an attacker may write into it.
 */
interface Trial {
  /** "tried with an alert …" */
  readonly name: string
  /** Within what the API documents. Templates of addresses are tried only with these: a path needs its values. */
  readonly isDocumented: boolean
  readonly parcel: Pick<Parcel, 'alert' | 'context'>
}

/** The sentence about the first of them that `render` throws over. */
export function trialProblem(
  render: (parcel: Trial['parcel']) => unknown,
  options: { documentedOnly?: boolean } = {},
): string | undefined {
  trials ??= madeTrials()
  for (const { name, isDocumented, parcel } of trials) {
    if (options.documentedOnly === true && !isDocumented) continue
    if (isCpuLimitSpent()) return cpuLimitSpent
    try {
      render(parcel)
    } catch (error) {
      return `tried with an alert ${name}: ${toError(error).message}`
    }
  }
  return undefined
}

export const cpuLimitSpent =
  'was not tried to the end: with the templates and patterns before it that takes too long; fewer or simpler ones are needed'

const sampleMs = Date.UTC(2026, 0, 1)
const alert = sampleAlert(sampleMs)
const sample = alert.row
const nullable = ['symbol', 'slug', 'why', 'notifiedAt']
const others = Object.keys(sample).filter((field) => field !== 'id' && !nullable.includes(field))

let trials: readonly Trial[] | undefined

function madeTrials(): Trial[] {
  return [
    ...trialsOf(true, [
      ['as the feed documents it', {}],
      ...nullable.map((field) => [`whose ${field} is null`, { [field]: null }] as const),
      [
        `whose ${nullable.join(', ')} are null and whose lists are empty`,
        { ...each(nullable, null), ...empty },
      ],
      ['whose payload is a mapping', { payload: { last: 5230, note: null, levels: [1, 'b'] } }],
      ['with quotation marks, backslashes, line breaks, control characters, tags and half a character', harm],
      ['in Persian, with joiners and marks of direction', each(texts, persian)],
      [
        'with very long texts',
        { ...each(texts, 'دراز long '.repeat(1_000)), payload: Array(500).fill('x=1') },
      ],
    ]),
    {
      name: 'with its price and its chart',
      isDocumented: false,
      parcel: { alert, context: sampleContext(contextKinds, sampleMs) },
    },
    ...trialsOf(false, [
      ...others.map((field) => [`whose ${field} is null`, { [field]: null }] as const),
      ['with empty texts', each(texts, '')],
      ['with numbers, lists and objects where texts are expected', odd],
      [
        'with nothing but its id and its headline',
        each([...nullable, ...others.filter(isDropped)], undefined),
      ],
      ['with null in everything but its id', each([...nullable, ...others], null)],
    ]),
  ]
}

/** Rows that cannot be parsed are quarantined by the bridge and never rendered. */
function trialsOf(
  isDocumented: boolean,
  written: readonly (readonly [name: string, change: Readonly<Record<string, unknown>>])[],
): Trial[] {
  return written.flatMap(([name, change]) => {
    const row = Object.entries({ ...sample, ...change }).filter(([, value]) => value !== undefined)
    const parsed = parseRow('test', Object.fromEntries(row))
    return parsed.ok ? [{ name, isDocumented, parcel: { alert: parsed.alert } }] : []
  })
}

const texts = ['kind', 'symbol', 'slug', 'headline', 'why']
const empty = { payload: [], ruleIds: [], channels: [] }
const nasty =
  'it\'s "quoted" \\" \\ \n\r\t\b\u0000\u001b\u007f \ud800 </script><b>&amp; {{ headline }}{% raw %} %zz ,]} \u2028\u202e'
const harm = {
  ...each(texts, nasty),
  payload: [nasty, { [nasty]: nasty }],
  ruleIds: [nasty],
  channels: [nasty],
}
const persian = 'می\u200cشود «فولاد» ۵٬۲۰۰ ريال، كاوه \u2067(TSE: FOLD)\u2069 \u200f؟'
const odd = {
  kind: 7,
  symbol: ['فولاد', null],
  slug: { a: 1 },
  headline: 12.5,
  url: false,
  why: [],
  payload: 'text',
  ruleIds: 12,
  firedAt: 1_795_239_005,
  notifiedAt: true,
  channels: 'push',
  isRead: 'no',
}

function isDropped(field: string): boolean {
  return field !== 'headline'
}

function each(fields: readonly string[], value: unknown): Record<string, unknown> {
  return Object.fromEntries(fields.map((field) => [field, value]))
}
