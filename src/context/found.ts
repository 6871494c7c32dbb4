import type { ContextName, SkipReason } from '../alert/context.ts'
import type { CachedContext } from '../store/context-cache.ts'
import { type Instrument, keyOf } from './instrument.ts'
import type { Value } from './needs.ts'

/** What an alert wants to be known of an instrument, and what was found. */
export interface Want {
  readonly of: Instrument
  /** A value that was read before is too old. */
  readonly atLeastMs: number
}

export type Found =
  | { readonly ok: true; readonly value: Value; readonly atMs: number; readonly from: 'cache' | 'call' }
  | { readonly ok: false; readonly why: SkipReason }

/** As it is kept: a value, or why there is none. */
export type Kept = Value | { readonly why: SkipReason }

/** JSON of one value: more would make messages that receivers refuse. */
const valueCharsMax = 262_144

export function fieldOf(name: ContextName, of: Instrument): string {
  return `${name} ${keyOf(of)}`
}

/** Beside the values: how far the pages of a name were read. No instrument is called so. */
export function pagesField(name: ContextName): string {
  return `${name}  *`
}

/** What is kept for a want; undefined where that is nothing, or too old. */
export function keptFor({ atLeastMs }: Want, kept: CachedContext | undefined): Found | undefined {
  if (kept === undefined || kept.atMs < atLeastMs) return undefined
  return foundOf(kept.value as Kept, kept.atMs, 'cache')
}

export function foundOf(kept: Kept, atMs: number, from: 'cache' | 'call'): Found {
  return 'why' in kept ? { ok: false, why: kept.why } : { ok: true, value: kept, atMs, from }
}

export function fitting(value: Value): Kept {
  return JSON.stringify(value).length > valueCharsMax ? { why: 'too_large' } : value
}
