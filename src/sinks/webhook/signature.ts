import { createHmac } from 'node:crypto'

/**
 * The headers of the Standard Webhooks specification (1.0.0) for one attempt: every key signs, the first key first, over
 * exactly the bytes that are sent. Without a key the attempt still has its id and its time, but no signature.
 */
export function signedHeaders(message: SignedMessage, keys: readonly Uint8Array[]): Record<string, string> {
  const timestamp = String(Math.floor(message.atMs / 1_000))
  const signed = `${message.id}.${timestamp}.${message.body}`
  const signatures = keys.map(
    (key) => `v1,${createHmac('sha256', key).update(signed, 'utf8').digest('base64')}`,
  )
  return {
    'webhook-id': message.id,
    'webhook-timestamp': timestamp,
    ...(signatures.length === 0 ? {} : { 'webhook-signature': signatures.join(' ') }),
  }
}

export interface SignedMessage {
  /** The same for every attempt of one alert. */
  readonly id: string
  /** When this attempt is made, in milliseconds since the epoch. */
  readonly atMs: number
  readonly body: string
}
