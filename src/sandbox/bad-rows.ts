import type { DeliveryRow } from './rows.ts'

/**
 * Rows that break the documented shape, one way each. None of them can be delivered; all of them stand among good rows
 * that must be. `make` gives a new good row at every call.
 */
export function makeBadRows(make: () => DeliveryRow): readonly unknown[] {
  const { id: _id, ...withoutId } = make()
  return [
    withoutId,
    { ...make(), id: 'seven' },
    { ...make(), id: 7.5 },
    { ...make(), id: -1 },
    { ...make(), id: null },
    { ...make(), id: 2 ** 53 + 2 },
    { ...make(), headline: null },
    { ...make(), headline: { text: 'an object' } },
    { ...make(), ruleIds: 'not a list' },
    { ...make(), firedAt: 1_767_225_600 },
    { ...make(), payload: 'not a list' },
    { ...make(), isRead: 'no' },
    null,
    'a bare string',
    [make()],
  ]
}
