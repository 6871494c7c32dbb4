import type { Alert } from '../../alert/alert.ts'
import { SinkError } from '../fault.ts'

/** What receivers get: the upstream row with every field as it came. The same bytes at every attempt. */
export function webhookBody(alert: Alert): string {
  try {
    return JSON.stringify({
      type: 'alert.fired',
      timestamp: alert.firedAt,
      data: { source: alert.source, delivery: alert.row },
    })
  } catch {
    // JSON.parse takes a nesting that JSON.stringify cannot give back.
    throw new SinkError('unrenderable', 'the alert cannot be written as JSON')
  }
}
