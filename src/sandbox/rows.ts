import { fieldsOf } from '../alert/json/json.ts'

/** The two kinds of row that the sandbox serves, field by field as the API documents them. */
export interface ApiDelivery {
  readonly id: number
  readonly kind: string
  readonly symbol: string | null
  readonly slug: string | null
  readonly payload: readonly string[]
  readonly headline: string
  readonly url: string
  readonly why: string | null
  readonly ruleIds: readonly string[]
  readonly firedAt: string
  readonly notifiedAt: string | null
  readonly channels: readonly string[]
  readonly isRead: boolean
}

export interface ApiRule {
  readonly id: number
  readonly kind: string
  readonly name: string | null
  readonly instrumentId: number | null
  readonly symbol: string | null
  readonly slug: string | null
  readonly screenId: number | null
  readonly screen: string | null
  readonly config: readonly string[]
  readonly channels: readonly string[]
  readonly isActive: boolean
  readonly disabledReason: string | null
  readonly lastEvaluatedAt: string | null
  readonly nextEvaluationAt: string | null
  readonly lastFiredAt: string | null
  readonly isArmed: boolean
  readonly mine: boolean
  readonly isPrivate: boolean
  readonly owner: string | null
  readonly unit: string | null
}

/** ISO in UTC, to the second. */
export function isoSeconds(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

/** Whether a row of the feed has the documented identity; hand-made bad rows have not. */
export function isApiDelivery(row: unknown): row is ApiDelivery {
  const { id, headline, firedAt } = fieldsOf(row)
  return Number.isSafeInteger(id) && typeof headline === 'string' && typeof firedAt === 'string'
}

/**
 * Rows without a usable id, each for another reason. None of them can be delivered; the good rows around them must be.
 * `make` gives a new good row at every call.
 */
export function makeBadRows(make: () => ApiDelivery): readonly unknown[] {
  const { id: _id, ...withoutId } = make()
  return [
    withoutId,
    { ...make(), id: 'seven' },
    { ...make(), id: 7.5 },
    { ...make(), id: -1 },
    { ...make(), id: null },
    { ...make(), id: 2 ** 53 + 2 },
    { ...make(), id: 0 },
    { ...make(), id: '12' },
    { ...make(), id: [12] },
    {},
    null,
    7,
    'a bare string',
    [make()],
  ]
}
