import type { Signer } from './secret.ts'

/**
 * The headers of the Standard Webhooks specification (1.0.0) for one attempt: every secret signs, the first one first,
 * over exactly the bytes that are sent. Without any the attempt still has its id and its time, but no signature.
 */
export function signedHeaders(message: SignedMessage, signers: readonly Signer[]): Record<string, string> {
  const timestamp = String(Math.floor(message.atMs / 1_000))
  const head = `${message.id}.${timestamp}.`
  const signatures = signers.map((signer) => signer(head, message.body))
  return {
    'webhook-id': message.id,
    'webhook-timestamp': timestamp,
    ...(signatures.length === 0 ? {} : { 'webhook-signature': signatures.join(' ') }),
  }
}

interface SignedMessage {
  /** The same for every attempt of one alert. */
  readonly id: string
  /** When this attempt is made, in milliseconds since the epoch. */
  readonly atMs: number
  readonly body: Uint8Array
}
