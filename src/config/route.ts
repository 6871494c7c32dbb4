import * as z from 'zod'
import { contextKinds, isContextName, macroPrefix } from '../alert/context.ts'
import { alertFields } from '../alert/match/fields.ts'
import { matchField } from '../alert/match/match-form.ts'
import { muteDays } from '../alert/mute.ts'
import { durationWithin } from '../lib/fields.ts'
import { nearest } from './mistakes/nearest.ts'
import { holidaysField, timeOfDayField, timeZoneField } from './source.ts'

/** One route: which alerts it takes, for which sinks, and when it withholds them. Withheld alerts are recorded. */
const muteSchema = z
  .strictObject({
    days: z.array(z.enum(muteDays)).min(1).optional(),
    from: timeOfDayField.refine((time) => time !== '24:00', 'expected a time before 24:00').prefault('00:00'),
    to: timeOfDayField.prefault('24:00'),
    timeZone: timeZoneField.default('Asia/Tehran'),
    holidays: holidaysField.describe(
      'Muted like the days: YYYY-MM-DD, Gregorian, or Jalali for years below 1700.',
    ),
  })
  .refine(({ from, to }) => from !== to, {
    path: ['to'],
    message: 'the span is empty: it ends when it begins',
    when: ({ issues }) => issues.length === 0,
  })

const throttleSchema = z.strictObject({
  per: durationWithin(1_000, 604_800_000).describe('At most one alert in this time.'),
  by: z
    .array(z.enum(alertFields))
    .min(1)
    .default(['symbol', 'ruleId'])
    .describe('Alerts that agree in these fields share the limit.'),
})

const contextWords = `expected one of ${contextKinds.join(', ')}, or ${macroPrefix}SERIES with the key of a macro series`
const contextField = z.string(contextWords).transform((text, context) => {
  if (isContextName(text)) return text
  const near = nearest(text, [...contextKinds, macroPrefix])
  context.addIssue({
    code: 'custom',
    message: contextWords,
    params: {
      remedy:
        near === undefined ? undefined : `did you mean ${near === macroPrefix ? `${near}SERIES` : near}?`,
    },
  })
  return z.NEVER
})

/** Of one route: each name costs units with every alert. */
const contextNamesMax = 20

export const routeSchema = z.strictObject({
  name: z.string().min(1).optional(),
  match: matchField().prefault({}).meta({
    neverEmpty: true,
    description: 'Fields are joined by AND, the values of one by OR; without any, everything is taken.',
  }),
  sinks: z.array(z.string()).min(1, 'expected at least one sink'),
  mute: z
    .array(muteSchema)
    .default([])
    .describe(
      'While one of these holds, this route takes no alert; what it took before, also for a digest, is sent. Days count by when the span begins.',
    ),
  throttle: throttleSchema
    .optional()
    .describe('The rest is held back, and counted in the next one that passes.'),
  context: z
    .array(contextField)
    .max(contextNamesMax)
    .default([])
    .describe(
      'What else the messages show of an alert: price, chart, indicators, filing, ownership, valuation, macro:SERIES. Each costs units, of which polling comes first.',
    ),
  whenRuleUnknown: z
    .enum(['deliver', 'skip'])
    .default('deliver')
    .describe('What holds where match asks for the rule, and the rule could not be looked up.'),
})
