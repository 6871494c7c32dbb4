import { createHmac, createPrivateKey, createSecretKey, type KeyObject, sign } from 'node:crypto'
import { SinkError } from '../transport/fault.ts'

/** Makes one signature of Standard Webhooks over these two, one after the other, with its version before it. */
export type Signer = (head: string, body: Uint8Array) => string

const hmacKeyBytesMin = 24
const hmacKeyBytesMax = 64
const seedBytes = 32

/** Why `text` is no Standard Webhooks secret; never quotes it. */
export function webhookSecretProblem(text: string): string | undefined {
  return signerIn(text) === undefined
    ? 'expected whsec_ and base64 of 24 to 64 random bytes (openssl rand -base64 32 makes some), or whsk_ and base64 of an Ed25519 seed'
    : undefined
}

/** The signer for `text`. A file may have changed: throws a SinkError (`credentials`) that does not quote an invalid one. */
export function webhookSigner(text: string): Signer {
  const signer = signerIn(text)
  if (signer !== undefined) return signer
  throw new SinkError('credentials', 'the webhook secret is neither whsec_ nor whsk_ and base64 of a key')
}

/** `whsec_`: one secret for both sides, v1. `whsk_`: a private key whose public half verifies, v1a. */
function signerIn(text: string): Signer | undefined {
  const match = /^(whsec|whsk)_([A-Za-z0-9+/]+={0,2})$/.exec(text.trim())
  const bytes = Buffer.from(match?.[2] ?? '', 'base64')
  if (match?.[1] === 'whsec')
    return bytes.length >= hmacKeyBytesMin && bytes.length <= hmacKeyBytesMax
      ? hmac(createSecretKey(bytes))
      : undefined
  // Some libraries keep the public half behind the seed.
  return bytes.length === seedBytes || bytes.length === seedBytes * 2
    ? ed25519(privateKey(bytes.subarray(0, seedBytes)))
    : undefined
}

/** A key that is no KeyObject is made one at each signature, which takes three times as long as the signature. */
function hmac(key: KeyObject): Signer {
  return (head, body) => `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`
}

function ed25519(key: KeyObject): Signer {
  return (head, body) => `v1a,${sign(null, Buffer.concat([Buffer.from(head), body]), key).toString('base64')}`
}

/** The bytes before the seed of an Ed25519 key in PKCS #8. */
const pkcs8Start = Buffer.from('302e020100300506032b657004220420', 'hex')

function privateKey(seed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([pkcs8Start, seed]), format: 'der', type: 'pkcs8' })
}
