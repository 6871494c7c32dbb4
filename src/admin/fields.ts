import * as z from 'zod'
import { deliveryStates } from './delivery-view.ts'

/** Pieces of the requests that the API takes; each says in its error what it would have taken. */

export const limitField = z.coerce.number().int().min(1).max(500).default(50)
export const nameField = z.string().min(1).max(200)
export const stateField = z.enum(deliveryStates)

/** An ISO 8601 time with its offset; milliseconds inside. */
export const instantField = z.iso
  .datetime({ offset: true, error: 'expected a time such as 2026-11-21T08:45:00Z' })
  .transform((text) => Date.parse(text))

export const alertIdField = z.string().regex(/^.{1,200}\.\d{1,16}$/, 'expected SOURCE.ID, such as main.4711')
/** A row of the quarantine is named by its id, or by a hash of it. */
export const rowIdsField = z
  .array(
    z
      .string()
      .regex(/^.{1,200}\.(\d{1,16}|raw-[0-9a-f]{1,64})$/, 'expected SOURCE.KEY, such as main.raw-3f2a…'),
  )
  .min(1)
  .max(2_000)
export const alertIdsField = z.array(alertIdField).min(1).max(2_000)

/** What a request that is carried out in portions may say beside its selection. */
export const portionFields = {
  cursor: z.string().min(1).max(2_000).optional(),
  at: instantField.optional(),
  limit: z.number().int().min(0).max(1_000).optional(),
}
