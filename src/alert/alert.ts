import { datedAt } from './fired-at.ts'
import { numberIn } from './json/json-number.ts'
import { foundText, shownFields } from './text/value.ts'

/**
 * One fired alert: a row of the feed, named by the source it came from. The typed fields are what routes and
 * texts need, empty or null where the row has nothing to show; `row` is the row of the feed with every field as it came,
 * which is what webhooks carry, numbers as they were spelled (`JsonNumber`).
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
  /** `firedAt` in milliseconds since the epoch; null when it is no date, or one that no alert can have. */
  readonly firedAtMs: number | null
  readonly row: Readonly<Record<string, unknown>>
}

type ParsedRow =
  | { readonly ok: true; readonly alert: Alert }
  | { readonly ok: false; readonly reason: string }

/**
 * Parses one row of the feed. Its id is all that it must have; every other field is taken as it comes: as text where the
 * bridge shows it or routes by it, whatever its type, and untouched in `row`. An odd row is better sent than lost.
 */
export function parseRow(source: string, raw: unknown): ParsedRow {
  const shown = shownFields(raw)
  if (shown === undefined) return { ok: false, reason: `row: expected an object, found ${foundText(raw)}` }
  const { id: given, firedAt } = shown.row
  const id = isAlertId(given) ? given : numberIn(given)
  if (!isAlertId(id)) {
    return { ok: false, reason: `id: expected a whole number from 1 to 2^53 - 1, found ${foundText(id)}` }
  }
  return { ok: true, alert: { source, id, ...shown, firedAtMs: datedAt(firedAt) } }
}

/**
 * The source of notices about the bridge itself. They go to the sinks of `operators`: no route, mute, throttle or silence is asked, so
 * that nobody who holds alerts back is left without them.
 */
export const noticeSource = 'alert-bridge'

/** What can name an alert for good. */
function isAlertId(id: unknown): id is number {
  return typeof id === 'number' && Number.isSafeInteger(id) && id > 0
}

/** The name of an alert over all sources: the `webhook-id`, the Message-ID's root, the job id's root. */
export function alertKey(alert: Pick<Alert, 'source' | 'id'>): string {
  return `${alert.source}.${alert.id}`
}

/** The alert that a key names; names of sources may contain dots. */
export function alertOfKey(key: string): { source: string; id: number } {
  const dot = key.lastIndexOf('.')
  return { source: key.slice(0, dot), id: Number(key.slice(dot + 1)) }
}
