import * as z from 'zod'
import { asciiDigits } from '../alert/text/text.ts'
import type { Portion, PortionEnd } from '../delivery/records/selection.ts'
import { given } from '../lib/given.ts'
import type { KeyedRequest } from '../store/operators/idempotency.ts'
import { type DeliveryFilter, deliveryStates, rowStates } from './views/delivery-view.ts'

/** Fields of the requests that the API takes; the error of each says what was expected. */

export const limitField = z.coerce.number().int().min(1).max(500).default(50)
export const nameField = z.string().min(1).max(200)
export const stateField = z.enum(deliveryStates)

/** An ISO 8601 time with its offset, parsed to milliseconds. */
export const instantField = z.iso
  .datetime({ offset: true, error: 'expected a time such as 2026-11-21T08:45:00Z' })
  .transform((text) => Date.parse(text))

const text = z.string().min(1).max(200)
/** Given once or several times: one of them. */
const textsField = z.union([text.transform((each) => [each]), z.array(text).min(1).max(20)], {
  error: 'expected a text of at most 200 characters, or up to 20 of them',
})

/** Which deliveries a list has. */
export const deliveryFields = {
  symbol: textsField.optional(),
  kind: textsField.optional(),
  rule: textsField.optional(),
  source: nameField.optional(),
  id: z
    .string()
    .regex(/^(.{1,200}\.)?[0-9۰-۹٠-٩]{1,16}$/, 'expected an id, such as 4711 or main.4711')
    .transform((id) => id.replace(/[^.]+$/, (digits) => String(BigInt(asciiDigits(digits)))))
    .optional(),
  sink: nameField.optional(),
  state: z.enum(rowStates).optional(),
  since: instantField.optional(),
  until: instantField.optional(),
}

type DeliveryFields = { [F in keyof typeof deliveryFields]?: z.output<(typeof deliveryFields)[F]> }

export function deliveryFilter({ since: sinceMs, until: untilMs, ...rest }: DeliveryFields): DeliveryFilter {
  return given({ ...rest, sinceMs, untilMs })
}

const alertIdField = z.string().regex(/^.{1,200}\.\d{1,16}$/, 'expected SOURCE.ID, such as main.4711')
/** The key of a row of the quarantine is its id, or `raw-` and a hash of the row. */
export const rowIdsField = z
  .array(
    z
      .string()
      .regex(/^.{1,200}\.(\d{1,16}|raw-[0-9a-f]{1,64})$/, 'expected SOURCE.KEY, such as main.raw-3f2a…'),
  )
  .min(1)
  .max(2_000)
export const alertIdsField = z.array(alertIdField).min(1).max(2_000)

/** Further fields of a request that is carried out in portions, beside its selection. */
export const portionFields = {
  cursor: z.string().min(1).max(2_000).optional(),
  at: instantField.optional(),
  limit: z.number().int().min(0).max(1_000).optional(),
}

/** Of an order that can tell what it would do, by the same rules, and change nothing. */
export const dryRunField = z.literal(true).optional()

interface PortionRequest {
  readonly cursor?: string | undefined
  readonly at?: number | undefined
  readonly limit?: number | undefined
}

/**
 * An order as the ports take it, from the fields of a request; those that are not given are left out. When a request with a key
 * is repeated because it broke off, the order keeps the time of the first request, by which it finds what was already done.
 */
export function portionOrder<T extends object>(
  { cursor, at, limit, ...rest }: T & PortionRequest,
  keyed: KeyedRequest | undefined,
) {
  const keepThrough = at === undefined ? keyed?.keep : undefined
  return given({ ...rest, cursor, atMs: at ?? keyed?.atMs, keepThrough, limit })
}

/** How far an order is. If the answer has a cursor, there is more: the caller sends the same order with that cursor. */
export function portionView<T extends PortionEnd & Pick<Portion, 'sample'>>({
  atMs,
  cursor,
  sample,
  ...counts
}: T) {
  const dry = sample && {
    dryRun: true,
    sample: sample.map(({ firedAtMs, ...alert }) => ({
      ...alert,
      firedAt: new Date(firedAtMs).toISOString(),
    })),
  }
  return { ...counts, ...dry, at: new Date(atMs).toISOString(), cursor: cursor ?? null }
}
