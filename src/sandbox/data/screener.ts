import { fieldsOf } from '../../alert/json/json.ts'
import { fieldKeys } from '../../feed/api/field-keys.ts'
import type { ScreenRun } from '../../feed/api/screen-run.ts'
import { instruments, type Listing, screens } from '../market.ts'
import { type Readings, readings } from './readings.ts'
import type { Scene } from './scene.ts'

/** The screener over the sandbox's market. An instrument without a reading never passes a condition on it. */

/** The operators, and the names of a condition's parts, are the sandbox's own: the document does not show them. */
const operators: Readonly<Record<string, (reading: number, value: unknown) => boolean>> = {
  gt: (reading, value) => reading > Number(value),
  gte: (reading, value) => reading >= Number(value),
  lt: (reading, value) => reading < Number(value),
  lte: (reading, value) => reading <= Number(value),
  eq: (reading, value) => reading === Number(value),
  neq: (reading, value) => reading !== Number(value),
}

interface Condition {
  readonly field: string
  readonly operator: string
  readonly value: unknown
}

interface ConditionSet {
  readonly match?: 'all' | 'any' | undefined
  readonly conditions: readonly Condition[]
}

const savedConditions: Readonly<Record<number, ConditionSet>> = {
  31: { match: 'any', conditions: [{ field: 'rsi', operator: 'gt', value: 60 }] },
  32: {
    match: 'all',
    conditions: [
      { field: 'pe', operator: 'lt', value: 7 },
      { field: 'return_3m', operator: 'gt', value: 0 },
    ],
  },
}
const screensLimit = 10
/** What the caller's plan allows in one call. */
const rowCap = 200

export function fieldCatalog() {
  return fieldKeys.map((key) => ({
    key,
    group: groupOfKey(key),
    format: formatOfKey(key),
    eager: eagerKeys.has(key),
    label: key.replaceAll('_', ' '),
    hint: '',
  }))
}

export function savedScreens() {
  const data = screens.map(({ id, name }) => ({ id, name, screen: savedConditions[id] }))
  return { data, meta: { kept: data.length, limit: screensLimit } }
}

type RunOutcome =
  | { readonly kind: 'result'; readonly data: unknown }
  | { readonly kind: 'noScreen' }
  | { readonly kind: 'invalid'; readonly fields: readonly string[] }

export function runScreen(run: ScreenRun, scene: Scene): RunOutcome {
  const { screenId, fields = [], sortBy, sortDescending = true } = run
  if (screenId !== undefined && savedConditions[screenId] === undefined) return { kind: 'noScreen' }
  const screen = screenId === undefined ? readScreen(run.screen) : savedConditions[screenId]
  if (screen === undefined) return { kind: 'invalid', fields: ['screen'] }
  const unknown = fields.filter((key) => !fieldKeys.includes(key))
  if (unknown.length > 0) return { kind: 'invalid', fields: ['fields'] }
  const universe = instruments.filter((each) => screenId !== undefined || isWithin(each, run.scope))
  const matched = universe
    .map((instrument) => ({ instrument, known: readings(instrument, scene) }))
    .filter(({ known }) => passes(known, screen))
  const shownKeys = new Set([...screen.conditions.map(({ field }) => field), ...fields])
  if (sortBy !== undefined) {
    shownKeys.add(sortBy)
    const sign = sortDescending ? -1 : 1
    // Instruments without a reading come last, in both directions.
    const rank = (known: Readings) => sign * (known(sortBy) ?? sign * Number.POSITIVE_INFINITY)
    matched.sort((a, b) => rank(a.known) - rank(b.known) || a.instrument.id - b.instrument.id)
  }
  const rows = matched.slice(0, rowCap).map(({ instrument: { id, symbol, slug }, known }) => ({
    instrumentId: id,
    symbol,
    slug,
    ...Object.fromEntries(
      [...shownKeys].flatMap((key) => {
        const reading = known(key)
        return reading === undefined ? [] : [[key, reading]]
      }),
    ),
  }))
  return { kind: 'result', data: { matched: matched.length, shown: rows.length, rowCap, rows } }
}

/** Whether a run of this saved screen would show the instrument. */
export function isInScreen(screenId: number, instrument: Listing, scene: Scene): boolean {
  const screen = savedConditions[screenId]
  return screen !== undefined && passes(readings(instrument, scene), screen)
}

function passes(known: Readings, { match = 'all', conditions }: ConditionSet): boolean {
  const holds = ({ field, operator, value }: Condition) => {
    const reading = known(field)
    return reading !== undefined && (operators[operator]?.(reading, value) ?? false)
  }
  if (conditions.length === 0) return true
  return match === 'all' ? conditions.every(holds) : conditions.some(holds)
}

/** Without a screen everything passes; undefined where it is no valid screen. */
function readScreen(screen: ScreenRun['screen']): ConditionSet | undefined {
  const given = screen?.['conditions'] ?? []
  if (!Array.isArray(given)) return undefined
  const conditions = given.flatMap((each: unknown): Condition[] => {
    const { field, operator, value } = fieldsOf(each)
    const isReadings = typeof operator === 'string' && Object.hasOwn(operators, operator)
    return typeof field === 'string' && isReadings && typeof value === 'number'
      ? [{ field, operator, value }]
      : []
  })
  return conditions.length === given.length ? { match: screen?.match, conditions } : undefined
}

function isWithin(instrument: Listing, scope: ScreenRun['scope']): boolean {
  const { group, exchange, industry } = scope ?? {}
  if (group !== undefined && group !== 'all' && group !== instrument.group) return false
  if (exchange !== undefined && exchange !== instrument.venue) return false
  return industry === undefined || industry === instrument.industry
}

const eagerKeys = new Set(['last', 'change', 'volume', 'value', 'pe', 'market_cap'])

function groupOfKey(key: string): string {
  if (/^(rsi|macd|bbands|natr|stoch|cci|willr|adx|plus_di|minus_di|sar|mfi|sma|ema|wma|pivot)/.test(key))
    return 'technical'
  if (/^(return|beta|correlation|stdev|semi_stdev|volatility|shared_sessions)/.test(key)) return 'risk'
  return /^(last|change|volume|value|trade|retail|avg|week|month)/.test(key) ? 'market' : 'fundamental'
}

function formatOfKey(key: string): string {
  return /percent|margin|growth|return|gap|yield|share$|change/.test(key) ? 'percent' : 'number'
}
