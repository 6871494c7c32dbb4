import { createPrivateKey } from 'node:crypto'
import { SinkError } from '../transport/fault.ts'

/**
 * What keeps `text` from signing mails; never quotes it. The library signs with RSA alone, and lets a mail go out without a
 * signature where the key is none.
 */
export function dkimKeyProblem(text: string): string | undefined {
  const expected = 'expected an RSA private key in PEM form, without a passphrase'
  try {
    return createPrivateKey(text).asymmetricKeyType === 'rsa' ? undefined : expected
  } catch {
    return expected
  }
}

/** The key in `text`. A file may hold anything by now: then a SinkError (`credentials`) that does not quote it. */
export function dkimKey(text: string): string {
  if (dkimKeyProblem(text) === undefined) return text
  throw new SinkError('credentials', 'the key of dkim is no RSA private key in PEM form')
}
