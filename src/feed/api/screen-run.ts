import * as z from 'zod'
import { isMapping } from '../../alert/json/json.ts'
import { isFieldKey } from './field-keys.ts'

/**
 * The body of a screener run, which costs 25 units, more than any other call: what the document says of it is checked
 * before it is sent. The names of the list of conditions and of a condition's parts are not documented, nor are the
 * operators: they are sent as they are given.
 */
const conditionsMax = 24

const fieldKey = z
  .string()
  .refine(isFieldKey, { error: 'expected a key of the screener, as screener/fields lists them' })

/** Any list in a screen counts as its conditions. */
const screen = z.looseObject({ match: z.enum(['all', 'any']).optional() }).superRefine((value, context) => {
  for (const [name, list] of Object.entries(value)) {
    if (!Array.isArray(list)) continue
    if (list.length > conditionsMax)
      context.addIssue({
        code: 'custom',
        path: [name],
        message: `expected at most ${conditionsMax} conditions, found ${list.length}`,
      })
    for (const [index, each] of list.entries())
      if (typeof each !== 'object' || each === null)
        context.addIssue({
          code: 'custom',
          path: [name, index],
          message: 'expected a condition: a field, an operator and a value',
        })
      else if ('field' in each && !(typeof each.field === 'string' && isFieldKey(each.field)))
        context.addIssue({
          code: 'custom',
          path: [name, index, 'field'],
          message: 'expected a key of the screener, as screener/fields lists them',
        })
  }
})

const board = ['bourse', 'fara', 'fara_base'] as const
const group = ['all', 'equity', 'fund', 'fixed_income'] as const

/** No property is required. `screen` and `scope` are ignored where there is a `screenId`. */
export const screenRun = z.strictObject({
  screenId: z.int().min(1).optional(),
  screen: screen.optional(),
  scope: z
    .strictObject({
      group: z.enum(group).optional(),
      exchange: z.enum(board).optional(),
      industry: z.string().min(1).optional(),
    })
    .optional(),
  fields: z.array(z.string().min(1)).optional(),
  sortBy: fieldKey.optional(),
  sortDescending: z.boolean().optional(),
})

export type ScreenRun = z.input<typeof screenRun>

/** What is wrong with a body, a sentence each, by its place. */
export function bodyProblems(body: unknown): string[] {
  const isSaved = isMapping(body) && body['screenId'] !== undefined
  const parsed = screenRun.safeParse(isSaved ? { ...body, screen: undefined, scope: undefined } : body)
  if (parsed.success) return []
  return parsed.error.issues.map(({ path, message }) => {
    const words = message.replace(/^Invalid (input|option): /, '').replace(/, received /, ', found ')
    return path.length === 0 ? `the body: ${words}` : `${path.join('.')}: ${words}`
  })
}
