import type * as z from 'zod'
import { type JsonNumber, mapNumbers } from '../../alert/json/json-number.ts'
import type { PageFigures } from '../../walk/page.ts'
import type { AnswerOf, EndpointPath, endpoints, PagePath } from '../endpoints.ts'
import { firstIssue, type Parsed, parseEnvelope, sanitize } from '../wire.ts'
import { cutTrees } from './ownership.ts'

/** One page of a list. */
export interface ApiPage<T> extends PageFigures {
  readonly rows: readonly T[]
  /** For each row that was left out, why it is not as the document shows. */
  readonly skipped: readonly string[]
}

/** The answer to a call of `P`: a page where it has pages, else its record with `data` and `meta`. */
export type Answered<P extends EndpointPath> = P extends PagePath ? ApiPage<AnswerOf<P>> : AnswerOf<P>

/** The same with numbers as they came: one that JavaScript would change, or spell in another way, is a JsonNumber. */
export type AnsweredExactly<P extends EndpointPath> = P extends PagePath
  ? ApiPage<Exactly<AnswerOf<P>>>
  : Exactly<AnswerOf<P>>

type Exactly<T> = T extends number
  ? T | JsonNumber
  : T extends readonly (infer E)[]
    ? readonly Exactly<E>[]
    : T extends object
      ? { readonly [K in keyof T]: Exactly<T[K]> }
      : T

/** Deeper than a tree of ownership that was cut, and not so deep that recursive code fails. */
const recordLevelsMax = 100

/** Makes any answer safe to print, store and walk through, in place. */
export function tameAnswer(path: EndpointPath, body: unknown): void {
  if (path === '/api/v1/instruments/{instrument}/ownership') cutTrees(body)
  sanitize(body, recordLevelsMax)
}

/**
 * Returns a body as the document shows it, or where it differs; unknown fields are kept, and numbers as they are in `body`, also
 * as a JsonNumber. `asked` is the page.
 */
export function parseAnswer(
  endpoint: (typeof endpoints)[number],
  asked: number,
  body: unknown,
): Parsed<unknown> {
  const { answer } = endpoint
  if (answer.envelope === 'page') return parsePage(answer.row, asked, body)
  const parsed = parsedBy(answer.body, body)
  return parsed.success
    ? { ok: true, page: parsed.data }
    : { ok: false, reason: firstIssue(parsed.error, body) }
}

/** The schemas check and change nothing: what they accept of plain numbers is what came. */
function parsedBy(schema: z.ZodType, raw: unknown): ReturnType<z.ZodType['safeParse']> {
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed
  return schema.safeParse(mapNumbers(raw, Number)).success ? { success: true, data: raw } : parsed
}

function parsePage(row: z.ZodType, asked: number, body: unknown): Parsed<ApiPage<unknown>> {
  const envelope = parseEnvelope(asked, body)
  if (!envelope.ok) return envelope
  const { data, ...meta } = envelope.page
  const rows = data.map((raw) => ({ raw, ...parsedBy(row, raw) }))
  return {
    ok: true,
    page: {
      ...meta,
      rows: rows.flatMap(({ success, data: fine }) => (success ? [fine] : [])),
      skipped: rows.flatMap(({ error, raw }) => (error === undefined ? [] : [firstIssue(error, raw)])),
    },
  }
}
