import * as z from 'zod'
import { type Reading, readings } from '../alert/context.ts'
import { durationWithin, tokenField } from '../lib/fields.ts'
import { httpUrlProblem } from '../sinks/common-config.ts'
import type { StartFrom } from '../walk/scope.ts'
import { isTimeZone, nearestTimeZone, parseHoliday, parseTimeOfDay } from './calendar.ts'
import { parseInstant } from './instant.ts'

/**
 * One source, an account of the Market Data API: its address, its budget, when to poll. `intervals.ts` checks whether
 * pace and budget fit each other, and fills the two intervals that depend on the budget.
 */
export const timeZoneField = z.string().superRefine((name, context) => {
  if (isTimeZone(name)) return
  const near = nearestTimeZone(name)
  context.addIssue({
    code: 'custom',
    message: 'expected a time zone by its IANA name, such as Asia/Tehran',
    params: { remedy: near === undefined ? undefined : `did you mean ${near}?` },
  })
})

const timeOfDayWords = 'expected a time of day as "HH:MM"'
/** `HH:MM`. */
export const timeOfDayField = z.string(timeOfDayWords).transform((text, context) => {
  const time = parseTimeOfDay(text)
  if (time !== undefined) return time
  context.addIssue({ code: 'custom', message: timeOfDayWords })
  return z.NEVER
})

/** The API's flat ceiling for an account. */
const requestsPerMinuteMax = 240

export const unitsPerDayMax = 10_000_000

export const budgetSchema = z.strictObject({
  unitsPerDay: z
    .int()
    .min(1)
    .max(unitsPerDayMax)
    .default(2_000)
    .describe('What the bridge may spend of the daily budget of the account.'),
  requestsPerMinute: z
    .int()
    // With one the first page would be read again and again, and none beneath it.
    .min(2)
    .max(requestsPerMinuteMax)
    .default(200)
    .describe('What the bridge may use of the 240 requests a minute that the API grants an account.'),
  resetsAt: timeOfDayField
    .refine((time) => time !== '24:00', 'expected a time before 24:00')
    .prefault('00:00')
    .describe('When the daily budget starts anew: HH:MM on the clock of timeZone.'),
  timeZone: timeZoneField.default('Asia/Tehran'),
})

const weekdays = ['sat', 'sun', 'mon', 'tue', 'wed', 'thu', 'fri'] as const

/** A span whose end is before its begin goes past midnight. */
const activeHoursSchema = z
  .strictObject({
    days: z.array(z.enum(weekdays)).min(1).default(['sat', 'sun', 'mon', 'tue', 'wed']),
    from: timeOfDayField.prefault('08:45'),
    to: timeOfDayField.prefault('12:45'),
    timeZone: timeZoneField.default('Asia/Tehran'),
  })
  .superRefine(({ from, to }, context) => {
    if (from === to)
      context.addIssue({ code: 'custom', path: ['to'], message: 'the span is empty: it ends when it begins' })
  })

const holidayWords = 'expected a day that exists, as YYYY-MM-DD: Gregorian, or Jalali for years below 1700'
const holidayField = z.string(holidayWords).transform((text, context) => {
  const date = parseHoliday(text)
  if (date !== undefined) return date
  context.addIssue({ code: 'custom', message: holidayWords })
  return z.NEVER
})

/** As Gregorian `YYYY-MM-DD`. */
export const holidaysField = z.array(holidayField).prefault([])

const dayMs = 86_400_000

export const pollSchema = z.strictObject({
  // 0 is allowed here: `intervals.ts` reports an interval that is too short, with the shortest that fits the budget.
  minInterval: durationWithin(0, 7 * dayMs)
    .optional()
    .describe(
      'Default 2s; shorter where more than 4,320 unitsPerDay ask for it, longer where requestsPerMinute does.',
    ),
  maxInterval: durationWithin(0, 7 * dayMs)
    .optional()
    .describe('Default 15m, or five even intervals of unitsPerDay where that is longer.'),
  every: durationWithin(0, 7 * dayMs)
    .optional()
    .describe('A fixed pace instead of the plan.'),
  exponent: z
    .number()
    .min(0)
    .max(1)
    .default(0.45)
    .describe('Polls follow the expected alerts to this power; 0 spreads them evenly.'),
  floor: z
    .number()
    .min(0)
    .max(1)
    .default(0.2)
    .describe(
      'The slowest pace, as a share of the even one: 0.2 lets no gap grow over five even intervals while there are units for that.',
    ),
  historyPages: z
    .int()
    .min(0)
    .max(100_000)
    .default(10)
    .describe(
      'History pages bought once on a cold start, so that the plan learns when alerts fire: at most so many, and for at most a tenth of the units left, in as many minutes as that takes when two thirds of their requests are left to polls; 0 buys none.',
    ),
  seenWindow: durationWithin(dayMs, 366 * dayMs)
    .prefault('30d')
    .describe('How long an alert is known as seen, at the least; the newest 20,000 always are.'),
  sweepShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe(
      'The largest share of the units of a day that sweeps may spend on looking for late rows deep in the feed; of the requests of a minute they leave two thirds to polls.',
    ),
  rulesShare: z
    .number()
    .min(0)
    .max(0.2)
    .default(0.01)
    .describe(
      'Of the units of a day, at most, for reading the alert rules: operators are notified of a rule that may not fire. 0 reads them only for routes and for the plan.',
    ),
  activeHours: activeHoursSchema
    .prefault({})
    .describe('The trading hours, by which the plan goes until it has learned when alerts come.'),
  holidays: holidaysField.describe(
    'Days without trade, YYYY-MM-DD: Gregorian, or Jalali for years below 1700.',
  ),
})

/** A longer wait would hold up a sink with few sends at a time. */
const contextDeadlineMsMax = 10_000
const readingNames = z.array(z.string().min(1)).min(1).max(20).optional()

const contextSchema = z.strictObject({
  unitsShare: z
    .number()
    .min(0)
    .max(0.9)
    .default(0.2)
    .describe(
      'The largest share of the units of a day that context of alerts and the command api may spend together; polling comes first.',
    ),
  deadline: durationWithin(50, contextDeadlineMsMax)
    .prefault('2s')
    .describe('An alert waits for its context so long, then goes out without.'),
  names: z
    .strictObject(Object.fromEntries(readings.map((reading) => [reading, readingNames])) as ReadingFields)
    .prefault({})
    .describe(
      'What the API calls fields that its document does not show, beside the names that the bridge tries: { changePercent: [change] }.',
    ),
})

type ReadingFields = Record<Reading, typeof readingNames>

const startFromField = z
  .string()
  .transform((text, context): StartFrom => {
    if (text === 'now' || text === 'beginning') return text
    const sinceMs = parseInstant(text)
    if (sinceMs !== undefined) return { sinceMs }
    context.addIssue({
      code: 'custom',
      message: 'expected now, beginning, or a time with its offset, such as 2026-11-21T09:00:00+03:30',
    })
    return z.NEVER
  })
  .meta({
    show: (from: StartFrom) => (typeof from === 'string' ? from : new Date(from.sinceMs).toISOString()),
  })

export const sourceSchema = z.strictObject({
  baseUrl: z.string().transform(parseBaseUrl).describe('The address of the API, without /api/v1.'),
  token: tokenField,
  account: z
    .string()
    .regex(/^[a-z0-9-]{1,40}$/, 'expected a name of at most 40 of a-z, 0-9 and -')
    .optional()
    .describe('Sources of one account: those that say the same name here share one budget and one minute.'),
  startFrom: startFromField
    .prefault('now')
    .describe('What of the history counts on the first start: now, beginning, or an ISO time.'),
  budget: budgetSchema.prefault({}),
  poll: pollSchema.prefault({}),
  context: contextSchema
    .prefault({})
    .describe('What calls beside polling may cost, and how long an alert waits for its context.'),
})

function parseBaseUrl(text: string, context: z.RefinementCtx): string {
  const problem = (message: string): string => {
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  }
  const refusal = httpUrlProblem(text, { userinfo: false })
  if (refusal !== undefined) return problem(refusal)
  const url = new URL(text)
  if (url.search !== '' || url.hash !== '') return problem('expected an address without ? and #')
  const path = url.pathname.replace(/\/+$/, '')
  if (path.endsWith('/api/v1')) return problem('expected the address without /api/v1, which is added to it')
  return `${url.origin}${path}`
}
