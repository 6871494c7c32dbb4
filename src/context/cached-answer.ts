import type { ContextName, SkipReason } from '../alert/context.ts'
import { isObject } from '../alert/json/json.ts'
import type { CachedContext, ContextCache } from '../store/context-cache.ts'
import type { LookupAnswer } from './calls.ts'
import { compare, type Instrument, keysOf } from './instrument.ts'

/** What an alert asks about an instrument; `Found` is the answer. */
export interface ContextRequest {
  readonly of: Instrument
  /** When the alert was seen: what was read since then is recent enough, however late it is. */
  readonly seenMs: number
  /** How much older than that a value may be. */
  readonly freshMs: number
}

export type Found =
  | {
      readonly ok: true
      readonly value: LookupAnswer
      readonly atMs: number
      readonly from: 'cache' | 'call'
    }
  | { readonly ok: false; readonly why: SkipReason }

type Kept = LookupAnswer | { readonly why: SkipReason }

/** As it is stored: a value, or why there is none, and what it is of. */
export type Stored = Kept & { readonly of?: Instrument }

/** How long it is believed that the API has nothing: an instrument may be listed today, and a call that finds none costs units too. */
export const absentFreshMs = 15 * 60_000

/** Clocks differ by less: what was read further ahead would count as new until this clock is there, by which it is old. */
const aheadMsMax = 60_000

/** Of the JSON of one value. Receivers would refuse the message with a longer one. */
const valueCharsMax = 262_144

/** The first is the one that no other instrument has. */
export function fieldsOf(name: ContextName, of: Instrument): readonly [string, ...string[]] {
  const [first, ...more] = keysOf(of)
  return [`${name} ${first}`, ...more.map((key) => `${name} ${key}`)]
}

/** The field beside the values with how far the pages of a name were read. No instrument has this key. */
export function pagesField(name: ContextName): string {
  return `${name}  *`
}

/** In the order of the requests: the stored answer; undefined where there is none, where it is too old, or of another instrument. */
export async function readKept(
  cache: Pick<ContextCache, 'read'>,
  requests: readonly (ContextRequest & { readonly fields: readonly string[] })[],
  now: () => number,
): Promise<readonly (Found | undefined)[]> {
  const kept = (await cache.read(requests.flatMap(({ fields }) => fields))).values()
  return requests.map((request) => {
    const found = request.fields.flatMap(() => keptFor(request, kept.next().value, now()) ?? [])
    return found.find(({ ok }) => ok) ?? found[0]
  })
}

function keptFor(
  { of, seenMs, freshMs }: ContextRequest,
  kept: CachedContext | undefined,
  nowMs: number,
): Found | undefined {
  // What cannot be read is as if it were not there: Redis may hold what another version wrote.
  if (kept === undefined || !isStored(kept.value)) return undefined
  const { of: own, ...value } = kept.value
  const olderMs = 'why' in value && value.why === 'not_found' ? Math.min(freshMs, absentFreshMs) : freshMs
  if (kept.atMs < seenMs - olderMs || kept.atMs > nowMs + Math.max(freshMs, aheadMsMax)) return undefined
  if (own !== undefined && compare(own, of) === 'other') return undefined
  return foundOf(value, kept.atMs, 'cache')
}

function isStored(value: unknown): value is Stored {
  if (!isObject(value) || ('of' in value && !isInstrument(value.of))) return false
  return 'why' in value ? typeof value.why === 'string' : 'data' in value
}

function isInstrument(value: unknown): value is Instrument {
  return isObject(value) && ['symbol', 'slug'].every((name) => isTextOrNone(value[name]))
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

export function foundOf(kept: Kept, atMs: number, from: 'cache' | 'call'): Found {
  return 'why' in kept ? { ok: false, why: kept.why } : { ok: true, value: kept, atMs, from }
}

export function fitting(value: LookupAnswer): Kept {
  return JSON.stringify(value).length > valueCharsMax ? { why: 'too_large' } : value
}
