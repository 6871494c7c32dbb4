import { SinkError } from '../fault.ts'

const prefix = 'whsec_'
const keyBytesMin = 24
const keyBytesMax = 64

/** What keeps `text` from being a Standard Webhooks secret; never quotes it. */
export function webhookSecretProblem(text: string): string | undefined {
  return decodeKey(text) === undefined
    ? 'expected whsec_ and base64 of 24 to 64 random bytes (openssl rand -base64 32 makes some)'
    : undefined
}

/** The signing key in `text`. A file may hold anything by now: then a SinkError (`credentials`) that does not quote it. */
export function webhookKey(text: string): Buffer {
  const key = decodeKey(text)
  if (key !== undefined) return key
  throw new SinkError('credentials', 'the webhook secret is not whsec_ and base64 of 24 to 64 bytes')
}

function decodeKey(text: string): Buffer | undefined {
  const trimmed = text.trim()
  if (!trimmed.startsWith(prefix)) return undefined
  const encoded = trimmed.slice(prefix.length)
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined
  const key = Buffer.from(encoded, 'base64')
  return key.length >= keyBytesMin && key.length <= keyBytesMax ? key : undefined
}
