/**
 * What the API's other endpoints know about an alert: the names that a route may ask for, and what was found for one alert.
 * What each name costs and how it is bought is in `context/`.
 */
export const contextKinds = ['price', 'chart', 'indicators', 'filing', 'ownership', 'valuation'] as const
export type ContextKind = (typeof contextKinds)[number]
/** A macro series by its key, as the API's catalog spells it: `macro:usd_free`. */
type MacroName = `macro:${string}`
export type ContextName = ContextKind | MacroName

export const macroPrefix = 'macro:'

/** Whether `text` is a name of context. The keys of macro series are not documented; one has no spaces in it. */
export function isContextName(text: string): text is ContextName {
  return contextKinds.some((kind) => kind === text) || /^macro:[^\s\p{C}]{1,100}$/u.test(text)
}

/** Units that it costs at the least, bought for one alert. `context/calls.ts` has the calls. */
export function contextUnits(name: ContextName): number {
  return name in kindUnits ? kindUnits[name as ContextKind] : macroUnits
}

const kindUnits: Readonly<Record<ContextKind, number>> = {
  price: 1,
  chart: 2,
  indicators: 5,
  filing: 1,
  ownership: 5,
  valuation: 1,
}
const macroUnits = 1

/**
 * The units of a day that context can ever use, of a source's `unitsShare`: the rest of that share is left to the command `api`.
 * `context/spending.ts` says how much of it by which hour, and why no more.
 */
export function contextUnitsMax(unitsPerDay: number, unitsShare: number): number {
  return Math.floor(unitsPerDay * unitsShare * contextShareMax)
}

export const contextShareMax = 0.3

/** Why a name is not among what was found; the reasons are a closed set. */
export type SkipReason =
  | 'no_instrument' // the alert names no instrument, or by digits alone
  | 'not_found' // the API holds nothing of it
  | 'deadline' // it did not come in time, or was not asked for since it would have come too late
  | 'budget' // what is left of the day's units is for polling, or the share of context is used up
  | 'burst' // many alerts at once: the units of these minutes are used up
  | 'minute' // the requests of this minute are used up
  | 'held' // the API asked to wait
  | 'scope' // the token lacks the scope, or the account's tier the API
  | 'failed' // the API's answer was a fault, or a template makes nothing valid of it
  | 'resting' // the endpoint, or its answer of this instrument, failed or was slow a moment ago
  | 'too_large' // the answer is larger than a message should carry, or than its receiver accepts
  | 'retry' // only the first attempt buys
  | 'unavailable' // Redis did not answer, the token is of another account, or the bridge is stopping

export interface AlertContext {
  /** By its name: the answer's own fields, as they came. */
  readonly parts: Readonly<Partial<Record<ContextName, ContextPart>>>
  readonly skipped: readonly { readonly what: ContextName; readonly why: SkipReason }[]
  /** Names of fields by reading, of the config: they go before those that the bridge knows. */
  readonly names: ReadingNames
}

export interface ContextPart {
  readonly data: unknown
  /** When it was read, ISO. */
  readonly at: string
}

/** What messages for people show of context. The API's document does not show what these fields are called. */
export const readings = [
  'symbol',
  'slug',
  'last',
  'change',
  'changePercent',
  'unit',
  'points',
  'date',
  'close',
  'halted',
  'level',
  'indicators',
  'rsi',
  'mfi',
  'cci',
  'stochastic',
  'williams',
  'title',
  'value',
] as const
export type Reading = (typeof readings)[number]
export type ReadingNames = Readonly<Partial<Record<Reading, readonly string[] | undefined>>>
