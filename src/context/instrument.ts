import type { Alert } from '../alert/alert.ts'
import type { ReadingNames } from '../alert/context.ts'
import { normaliseSymbol } from '../alert/match/match.ts'
import { readText } from '../alert/readings.ts'

/** What an alert is about, by the API's names for it. */
export interface Instrument {
  readonly symbol: string | undefined
  readonly slug: string | undefined
}

/** Of calls that are about none: a page of many, a macro series. */
export const noInstrument: Instrument = { symbol: undefined, slug: undefined }

/** undefined where the alert names no instrument: alerts of a whole screen do not. */
export function instrumentOf({ symbol, slug }: Pick<Alert, 'symbol' | 'slug'>): Instrument | undefined {
  const of = { symbol: named(symbol), slug: named(slug) }
  return of.symbol === undefined && of.slug === undefined ? undefined : of
}

/** The instrument of a row; undefined where it shows neither. */
export function instrumentOfRow(row: unknown, names: ReadingNames): Instrument | undefined {
  return instrumentOf({
    symbol: readText(row, 'symbol', names) ?? null,
    slug: readText(row, 'slug', names) ?? null,
  })
}

/**
 * The keys of its stored context: its slug, and its symbol in one spelling, which instruments of different slugs may share. Each
 * alone finds it where an alert, or a row of a page, shows no more.
 */
export function keysOf({ symbol, slug }: Instrument): readonly [string, ...string[]] {
  const bySlug = `/${slug ?? ''}`
  if (symbol === undefined) return [bySlug]
  return slug === undefined ? [normaliseSymbol(symbol)] : [bySlug, normaliseSymbol(symbol)]
}

/** Different for every two instruments that may differ. */
export function exactKeyOf({ symbol = '', slug = '' }: Instrument): string {
  return `${symbol}\u0000${slug}`
}

/**
 * Whether two descriptions are of one instrument: the same slug, since two boards may have the same symbol; where one has no slug,
 * the same symbol, also with letters that only look alike (Arabic and Persian ones, invisible characters). `unknown`: they have
 * nothing to compare.
 */
export function compare(a: Instrument, b: Instrument): 'same' | 'other' | 'unknown' {
  if (a.slug !== undefined && b.slug !== undefined) return a.slug === b.slug ? 'same' : 'other'
  if (a.symbol === undefined || b.symbol === undefined) return 'unknown'
  return normaliseSymbol(a.symbol) === normaliseSymbol(b.symbol) ? 'same' : 'other'
}

/** Of several, the one that is the instrument: where symbols only look alike, the one that has the same spelling. */
export function findOf<T>(
  list: readonly T[],
  of: Instrument,
  instrumentOf: (each: T) => Instrument | undefined,
) {
  const found = list.filter((each) => {
    const own = instrumentOf(each)
    return own !== undefined && compare(own, of) === 'same'
  })
  return found.find((each) => instrumentOf(each)?.symbol === of.symbol) ?? found[0]
}

function named(text: string | null): string | undefined {
  const trimmed = text?.trim() ?? ''
  return trimmed === '' ? undefined : trimmed
}
