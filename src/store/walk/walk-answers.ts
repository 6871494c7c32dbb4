import * as z from 'zod'
import type { Scope } from '../../walk/scope.ts'
import type { Stretch } from '../../walk/stretch.ts'

/** What the scripts of `walk-scripts.ts` return, and what is stored as JSON: checked where it enters the process. */

export const scopeSchema: z.ZodType<Scope> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('all') }),
  z.object({ kind: z.literal('since'), sinceMs: z.number() }),
  z.object({
    kind: z.literal('from'),
    sinceMs: z.number(),
    history: z.number().nullable(),
    beneath: z.number().optional(),
  }),
])
export const stretchesSchema: z.ZodType<readonly Stretch[]> = z.array(
  z.object({ run: z.number(), frontier: z.string(), end: z.number(), total: z.number() }),
)
export const openAnswer = z.tuple([z.number(), z.number(), z.array(z.string()), z.string()])
const scores = z.array(z.string().nullable())
export const lookAnswer = z.tuple([z.array(z.string()), z.string(), scores, scores, scores, z.string()])
export const commitAnswer = z.tuple([
  z.enum(['done', 'raced', 'replaced', 'lost']),
  z.number(),
  z.number(),
  z.number(),
])
