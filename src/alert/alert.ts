import * as z from 'zod'

/**
 * One fired alert: a row of the delivery feed, named by the source it came from. The typed fields are what routes and
 * texts need; `row` is the upstream row with every field as it came, which is what webhooks carry.
 */
export interface Alert {
  readonly source: string
  readonly id: number
  readonly kind: string
  readonly symbol: string | null
  readonly slug: string | null
  readonly headline: string
  readonly url: string
  readonly why: string | null
  readonly ruleIds: readonly string[]
  readonly firedAt: string
  /** `firedAt` in milliseconds since the epoch; null when the text is no date. */
  readonly firedAtMs: number | null
  readonly row: Readonly<Record<string, unknown>>
}

export type ParsedRow =
  | { readonly ok: true; readonly alert: Alert }
  | { readonly ok: false; readonly reason: string }

/**
 * Parses one upstream row. Identity and what people are shown must have the documented type; unknown fields are kept,
 * list entries may be numbers, and a `firedAt` that is no date is kept as text: a strange row is better sent than lost.
 */
export function parseRow(source: string, row: unknown): ParsedRow {
  const parsed = rowSchema.safeParse(row)
  if (!parsed.success) return { ok: false, reason: firstIssue(parsed.error) }
  const { symbol, slug, why, ruleIds, ...rest } = parsed.data
  const firedAtMs = Date.parse(rest.firedAt)
  return {
    ok: true,
    alert: {
      source,
      id: rest.id,
      kind: rest.kind,
      symbol: symbol ?? null,
      slug: slug ?? null,
      headline: rest.headline,
      url: rest.url,
      why: why ?? null,
      ruleIds: ruleIds.map(String),
      firedAt: rest.firedAt,
      firedAtMs: Number.isNaN(firedAtMs) ? null : firedAtMs,
      row: row as Record<string, unknown>,
    },
  }
}

/** The name of an alert over all sources: the `webhook-id`, the Message-ID's root, the job id's root. */
export function alertKey(alert: Pick<Alert, 'source' | 'id'>): string {
  return `${alert.source}.${alert.id}`
}

const rowSchema = z.looseObject({
  id: z.int().positive(),
  kind: z.string(),
  symbol: z.string().nullish(),
  slug: z.string().nullish(),
  payload: z.union([z.array(z.unknown()), z.record(z.string(), z.unknown())]),
  headline: z.string(),
  url: z.string(),
  why: z.string().nullish(),
  ruleIds: z.array(z.union([z.string(), z.number()])),
  firedAt: z.string(),
  notifiedAt: z.string().nullish(),
  channels: z.array(z.unknown()),
  isRead: z.boolean(),
})

function firstIssue(error: z.ZodError): string {
  const issue = error.issues[0]
  return issue ? `${issue.path.join('.') || 'row'}: ${issue.message}` : 'not a row'
}
