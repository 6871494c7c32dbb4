import type { ApiDelivery } from './rows.ts'

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
