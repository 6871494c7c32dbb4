import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { believedAt } from '../../src/alert/fired-at.ts'
import { fromJobData, jobId, toJobData } from '../../src/alert/job.ts'
import { type AlertField, alertFields } from '../../src/alert/match/fields.ts'
import { alertValues } from '../../src/alert/match/match.ts'
import { atOnce } from '../../src/alert/match/turns.ts'
import { type Route, route } from '../../src/alert/route.ts'
import { parseDeliveriesPage } from '../../src/feed/wire.ts'
import { bodyWriter } from '../../src/sinks/body.ts'
import { discordMessage } from '../../src/sinks/discord/message.ts'
import { digestMessage, mailMessage } from '../../src/sinks/email/message.ts'
import { ntfyMessage } from '../../src/sinks/ntfy/message.ts'
import { pagerDutyEvent } from '../../src/sinks/pagerduty/event.ts'
import type { Parcel } from '../../src/sinks/sink.ts'
import { plainList, plainMessage, slackList, slackMessage } from '../../src/sinks/slack/blocks.ts'
import { teamsMessage } from '../../src/sinks/teams/card.ts'
import { telegramText } from '../../src/sinks/telegram/message.ts'
import { anyText } from '../support/any-text.ts'
import { englishDisplay, persianDisplay } from './samples.ts'

/** An alert is worth sending whatever its fields hold: its way is gone here with any JSON in any of them. */

const fields = [
  ...['kind', 'symbol', 'slug', 'payload', 'headline', 'url', 'why', 'ruleIds', 'firedAt', 'notifiedAt'],
  ...['channels', 'isRead', 'extra'],
]
const text = anyText({ maxLength: 40 })
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  text,
  fc.array(text, { maxLength: 3 }),
  fc.constantFrom('2026-11-21T05:30:05Z', '+275760-09-13T00:00:00Z', '-000001-01-01', 'https://e.com/\u202e'),
)
const row = fc
  .record(Object.fromEntries(fields.map((field) => [field, value])), { requiredKeys: [] })
  .chain((some) => fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }).map((id) => ({ ...some, id })))

const everywhere: readonly Route[] = [
  { match: {}, sinks: ['all'] },
  ...alertFields.flatMap((field: AlertField): Route[] => [
    { match: { [field]: [{ op: 'equals', value: 'x' }] }, sinks: ['equal'] },
    { match: { [field]: [{ op: 'glob', value: '*a*' }] }, sinks: ['glob'] },
    { match: { [field]: [{ op: 'regex', value: '^.?[0-9]' }] }, sinks: ['regex'] },
    { match: { [field]: [{ op: 'not', matchers: [{ op: 'equals', value: 'x' }] }] }, sinks: ['not'] },
    { match: {}, sinks: ['all'], throttle: { per: 1_000, by: [field] } },
  ]),
]
const context = {
  nowMs: 0,
  silences: [],
  ruleOf: () => undefined,
}
const seenAtMs = Date.parse('2026-11-22T00:00:00Z')
const parties = { from: { name: '', address: 'a@example.com' }, to: 'b@example.com' }
const event = { routingKey: 'k', severity: 'info', client: 'c' }
const jsonTemplate = '{"a": {{ delivery | json }}, "b": {{ title | json }}, "c": {{ why | json }}}'
const writers = [
  bodyWriter({}, englishDisplay),
  bodyWriter({ format: 'cloudevents' }, englishDisplay),
  bodyWriter({ template: jsonTemplate }, englishDisplay),
  bodyWriter({ template: '<p>{{ headline }} {{ symbol }}</p>', contentType: 'text/html' }, persianDisplay),
  bodyWriter({ template: '{{ delivery }} {{ ruleIds }}', contentType: 'text/plain' }, persianDisplay),
]

it('a row with an id is routed and written for every sink, whatever its other fields hold', () => {
  fc.assert(
    fc.property(row, (raw) => {
      // As it comes over the wire.
      const sent: unknown = JSON.parse(JSON.stringify(raw))
      // All but the name that could change a prototype.
      const kept: unknown = JSON.parse(JSON.stringify(raw), (key, part: unknown) =>
        key === '__proto__' ? undefined : part,
      )
      const parsed = parseDeliveriesPage('main', 1, {
        data: [sent],
        meta: { page: 1, perPage: 100, total: 1, lastPage: 1 },
      })
      const [only] = parsed.ok ? parsed.page.rows : []
      if (!only?.ok) throw new Error(JSON.stringify(only))
      const { alert } = only
      expect(alert.row).toEqual(kept)
      expect(atOnce(route(alert, everywhere, context)).sinks).toContain('all')
      for (const field of alertFields)
        for (const each of alertValues(alert, field)) expect(each).toBeTypeOf('string')
      const stored: unknown = JSON.parse(JSON.stringify(toJobData({ sink: 'all', alert, seenAtMs })))
      const believed = { ...alert, firedAtMs: believedAt(alert.firedAtMs, seenAtMs) }
      expect(fromJobData('all', stored)).toEqual({
        ok: true,
        job: { sink: 'all', alert: believed, seenAtMs },
      })
      expect(jobId(alert)).toBe(`main.${raw.id}`)
      expect(write({ alert })).not.toContain(undefined)
    }),
    { numRuns: 150 },
  )
})

function write(parcel: Parcel): readonly unknown[] {
  const many = [parcel, parcel]
  const bodies = writers.map((writer) => writer.write(parcel))
  expect(JSON.parse(bodies[0] ?? '')).toMatchObject({ data: { delivery: parcel.alert.row } })
  return [englishDisplay, persianDisplay].flatMap((display) => [
    ...bodies,
    ...[slackMessage(parcel, display), plainMessage(parcel, display)],
    ...[slackList(many, display), plainList(many, display)],
    ...[mailMessage(parcel, parties, display), digestMessage(many, parties, display)],
    telegramText(parcel, display),
    discordMessage(parcel, display),
    teamsMessage(parcel, display),
    pagerDutyEvent(parcel, display, event),
    ntfyMessage(parcel, display, { topic: 't', priority: 'default', tags: [] }),
  ])
}
