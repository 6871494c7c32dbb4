import { alertKey } from '../../alert/alert.ts'
import type { Display } from '../../alert/text/display.ts'
import { cut, oneLine } from '../../alert/text/text.ts'
import { contextWordsOf, wordsOf } from '../../alert/text/words.ts'
import { given } from '../../lib/given.ts'
import { contentOf, shortFacts, smallLine } from '../content.ts'
import type { Parcel } from '../sink.ts'
import { timestampOf } from '../timestamp.ts'

/**
 * An alert as an event that opens an incident. The same alert has the same `dedup_key`, so that a repeated attempt joins
 * the incident that is there. PagerDuty shows all of it as plain text.
 */
export function pagerDutyEvent(
  parcel: Parcel,
  display: Display,
  options: { routingKey: string; severity: string; client: string },
): object {
  const { alert } = parcel
  const content = contentOf(parcel, display, limits)
  const why = content.why.map(({ text }) => text).join('\n')
  const { own, known } = shortFacts(content)
  const facts = Object.fromEntries(own.map(({ word, value }) => [word, value]))
  const component = cut(oneLine(alert.symbol ?? ''), limits.factCharsMax)
  const kind = cut(oneLine(alert.kind), limits.factCharsMax)
  return {
    routing_key: options.routingKey,
    event_action: 'trigger',
    dedup_key: alertKey(alert),
    client: options.client,
    payload: {
      summary: content.title.text,
      source: alert.source,
      severity: options.severity,
      ...given({ timestamp: timestampOf(alert) }),
      ...(component === '' ? {} : { component }),
      ...(kind === '' ? {} : { class: kind }),
      custom_details: {
        ...facts,
        ...(known === undefined ? {} : { [contextWordsOf(display).market]: known }),
        ...(why === '' ? {} : { [wordsOf(display).why]: why }),
        id: smallLine(content, (part) => part),
      },
    },
    ...(content.url === undefined ? {} : { links: [{ href: content.url, text: wordsOf(display).open }] }),
  }
}

/** PagerDuty allows 1,024 in a summary and 512 KB in all. */
const limits = { titleCharsMax: 1_000, factCharsMax: 300, whyCharsMax: 8_000, whyLinesMax: 60 } as const
