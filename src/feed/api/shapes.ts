import * as z from 'zod'

/**
 * What the API's answers look like, as strictly as its document shows them and no stricter: a field that it names has its
 * type, a field that it does not name is kept as it came. Where it says that the fields are not shown, a row is any
 * object and its fields are `unknown`.
 */
const text = z.string()
const textOrNull = z.string().nullish()
const wholeOrNull = z.int().nullish()
const texts = z.array(z.string())

/** Its fields are not documented. */
const anyObject = z.looseObject({})
/** A single record: `data`, and sometimes `meta`. */
const record = <T extends z.ZodType>(data: T) => z.looseObject({ data, meta: anyObject.optional() })
/** A list without pages. Whether as an array or within an object is not documented: an array's entries are checked. */
const whole = <T extends z.ZodType>(entry: T) => z.union([z.array(entry), anyObject])

/** Both names, the venue and the last price are there, under names that the document does not show. */
export const instrument = anyObject
export const profile = record(anyObject)
export const boardRow = anyObject

/** Rial and toman differ by ten: a record without its `unit` is of no use. Points and statistics are not documented. */
export const prices = record(z.looseObject({ unit: z.string().nullable() }))

/** The values are not documented; an indicator without a value is absent. */
export const indicators = record(z.looseObject({ seriesHash: text }))

const screenerField = z.looseObject({
  key: text,
  group: text,
  format: text,
  eager: z.boolean(),
  label: text,
  hint: text,
})
export const screenerFields = record(whole(screenerField))

export const screens = z.looseObject({
  data: whole(anyObject),
  meta: z.looseObject({ kept: z.int().nonnegative(), limit: z.int().nonnegative() }),
})

/** `rowCap` null: the plan allows any number of rows. */
export const screenResult = record(
  z.looseObject({
    matched: z.int().nonnegative(),
    shown: z.int().nonnegative(),
    rowCap: z.int().nonnegative().nullable(),
  }),
)

export const letter = z.looseObject({ periodMonths: z.number().nullish() })

/** `quota` is beside the rows; whether in `data` or in `meta` is not documented. */
const quota = z.looseObject({ total: z.int().nonnegative(), shown: z.int().nonnegative() })
export const statements = z
  .looseObject({
    data: z.union([z.array(z.unknown()), z.looseObject({ quota: quota.optional() })]),
    meta: z.looseObject({ quota: quota.optional() }).optional(),
  })
  .refine(({ data, meta }) => (!Array.isArray(data) && data['quota'] !== undefined) || meta?.quota, {
    error: 'expected a quota with total and shown',
    path: ['data', 'quota'],
  })

export const valuations = record(
  whole(z.looseObject({ gapAtSave: z.number().nullish(), gapNow: z.number().nullish() })),
)

export const macroCatalog = record(
  whole(z.looseObject({ key: text, freshAt: textOrNull, stale: z.boolean() })),
)
/** Points are not documented, nor how several series differ. */
export const macroSeries = record(whole(z.unknown()))

export const alertRule = z.looseObject({
  id: z.int(),
  kind: text,
  name: textOrNull,
  instrumentId: wholeOrNull,
  symbol: textOrNull,
  slug: textOrNull,
  screenId: wholeOrNull,
  screen: textOrNull,
  config: texts,
  channels: texts,
  isActive: z.boolean(),
  disabledReason: textOrNull,
  lastEvaluatedAt: textOrNull,
  nextEvaluationAt: textOrNull,
  lastFiredAt: textOrNull,
  isArmed: z.boolean(),
  mine: z.boolean(),
  isPrivate: z.boolean(),
  owner: textOrNull,
  unit: textOrNull,
})

export const alertDelivery = z.looseObject({
  id: z.int(),
  kind: text,
  symbol: textOrNull,
  slug: textOrNull,
  payload: texts,
  headline: text,
  url: text,
  why: textOrNull,
  ruleIds: texts,
  firedAt: text,
  notifiedAt: textOrNull,
  channels: texts,
  isRead: z.boolean(),
})
