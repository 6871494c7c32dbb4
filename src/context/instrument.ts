import type { Alert } from '../alert/alert.ts'
import type { ReadingNames } from '../alert/context.ts'
import { normaliseSymbol } from '../alert/match.ts'
import { readText } from '../alert/readings.ts'

/** What an alert is about, by the API's names for it. A row belongs to an instrument that shares its symbol or its slug. */
export interface Instrument {
  readonly symbol: string | undefined
  readonly slug: string | undefined
}

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

/** The key of its stored context: the symbol in one spelling, or the slug. */
export function keyOf({ symbol, slug }: Instrument): string {
  return symbol === undefined ? `/${slug ?? ''}` : normaliseSymbol(symbol)
}

export function isSame(a: Instrument, b: Instrument): boolean {
  if (a.symbol !== undefined && b.symbol !== undefined)
    return normaliseSymbol(a.symbol) === normaliseSymbol(b.symbol)
  return a.slug !== undefined && a.slug === b.slug
}

function named(text: string | null): string | undefined {
  const trimmed = text?.trim() ?? ''
  return trimmed === '' ? undefined : trimmed
}
