import * as z from 'zod'
import { durationText, parseDuration } from './duration.ts'
import { Secret, tokenProblem } from './secret.ts'

/** Pieces that every config schema is made of. The `meta` marks are read by the JSON Schema generator. */

/**
 * `10s` and its like; milliseconds inside. Every duration has an upper bound: a mistyped one must not stop anything for
 * ever.
 */
export function durationWithin(
  minMs: number,
  maxMs: number,
  problemOf: (ms: number) => string | undefined = () => undefined,
) {
  const bounds =
    minMs === 0
      ? `of at most ${durationText(maxMs)}`
      : `between ${durationText(minMs)} and ${durationText(maxMs)}`
  return z
    .string()
    .transform((text, context) => {
      const ms = parseDuration(text)
      if (ms !== undefined) return ms
      context.addIssue({ code: 'custom', message: 'expected a duration such as 500ms, 10s, 15m, 6h or 3d' })
      return z.NEVER
    })
    .superRefine((ms, context) => {
      const message = ms < minMs || ms > maxMs ? `expected a duration ${bounds}` : problemOf(ms)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
    .meta({ fieldKind: 'duration', maxMs })
}

/** A secret: text in the file, or a `Secret` that the loader made from the `…File` field. */
export const secretField = z
  .union([z.string().min(1), z.instanceof(Secret)])
  .transform((value) => (typeof value === 'string' ? new Secret(value) : value))
  .meta({ fieldKind: 'secret' })

/** A secret that is sent in a header as it is. One in a file is checked by the loader, and again at use. */
export const tokenField = secretField
  .superRefine((secret, context) => {
    const message = secret.file === undefined ? tokenProblem(secret.reveal()) : undefined
    if (message !== undefined) context.addIssue({ code: 'custom', message, input: secret })
  })
  .meta({ fieldKind: 'secret' })
