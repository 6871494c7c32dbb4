import { alertKey } from '../alert/alert.ts'
import type { Display } from '../alert/text/display.ts'
import { oneLine } from '../alert/text/text.ts'
import { given } from '../lib/given.ts'
import { looksLikeToken } from '../lib/secret.ts'
import { namedSecretsIn } from '../telemetry/named-secrets.ts'
import { credentialsIn } from './secret-url.ts'
import type { Parcel } from './sink.ts'
import { escapingOf } from './template/escaping.ts'
import { createTemplate } from './template/template.ts'
import { timestampOf } from './timestamp.ts'
import { SinkError } from './transport/fault.ts'

/**
 * The body that a receiver gets: the alert, how many similar ones a throttle held back before it, and its context where a route
 * asks for that. Every attempt of an alert has the same bytes, unless a template uses the present time, or an earlier attempt
 * had to do without its context.
 */
interface BodyWriter {
  readonly contentType: string
  /** What may be a credential of the receiver in a template: an answer may repeat it. */
  readonly tokens: readonly string[]
  /** Throws a SinkError (`unrenderable`). */
  write(parcel: Parcel): string
}

export interface BodyOptions {
  readonly format?: 'standard' | 'cloudevents' | undefined
  readonly template?: string | undefined
  readonly contentType?: string | undefined
}

export function bodyWriter(options: BodyOptions, display: Display): BodyWriter {
  const { format, template: text, contentType = 'application/json' } = options
  if (text !== undefined) {
    const template = createTemplate(text, escapingOf(contentType), display)
    const named = namedSecretsIn(text)
    const tokens = [
      ...(text.match(words) ?? []).filter(looksLikeToken),
      ...named,
      ...named.flatMap(credentialsIn),
    ]
    return { contentType, tokens, write: (parcel) => template.render(parcel) }
  }
  return format === 'cloudevents'
    ? { contentType: 'application/cloudevents+json; charset=UTF-8', tokens: [], write: cloudEvent }
    : { contentType: 'application/json', tokens: [], write: webhookBody }
}

const words = /[^\s"'{}()|:;,=&./]+/g

/** What receivers get: the row of the feed with every field as it came. */
export function webhookBody(parcel: Parcel): string {
  return written({ type: 'alert.fired', timestamp: parcel.alert.firedAt, data: dataOf(parcel) })
}

/** CloudEvents 1.0, structured mode. An attribute that would have to be empty is left out. */
function cloudEvent(parcel: Parcel): string {
  const { alert } = parcel
  const subject = oneLine(alert.symbol ?? '')
  return written({
    specversion: '1.0',
    id: alertKey(alert),
    source: `/alert-bridge/${alert.source}`,
    type: 'alert.fired',
    ...given({ time: timestampOf(alert) }),
    ...(subject === '' ? {} : { subject }),
    datacontenttype: 'application/json',
    data: dataOf(parcel),
  })
}

function dataOf({ alert, heldBack = 0, context }: Parcel) {
  const shown = context && { context: { ...context.parts, skipped: context.skipped } }
  return { source: alert.source, ...(heldBack > 0 ? { heldBack } : {}), delivery: alert.row, ...shown }
}

function written(body: object): string {
  try {
    return JSON.stringify(body)
  } catch {
    // JSON.parse accepts a deeper nesting than JSON.stringify.
    throw new SinkError('unrenderable', 'the alert cannot be written as JSON')
  }
}
