import type { Match } from './match.ts'

/**
 * The fields of a match that have a `not` in a list of several, as paths. One of a list is enough, and nearly every alert is
 * not the one thing or not the other: such a list is hardly ever what was meant.
 */
export function wideFields({ rule = {}, ...fields }: Match): string[][] {
  const lists = [
    ...Object.entries(fields).map(([field, matchers]) => ({ path: [field], matchers })),
    ...Object.entries(rule).map(([field, matchers]) => ({ path: ['rule', field], matchers })),
  ]
  return lists
    .filter(({ matchers = [] }) => matchers.length > 1 && matchers.some(({ op }) => op === 'not'))
    .map(({ path }) => path)
}

export const wideFieldText = 'one of this list is enough, so with a not in it nearly every alert matches'
export const wideFieldRemedy = 'write { not: [a, b] } for none of several'
