import { createPrivateKey } from 'node:crypto'
import { SinkError } from '../transport/fault.ts'

/**
 * Why `text` is no key that can sign mails; never quotes it. The library signs with RSA alone, and sends a mail without a
 * signature where the key is invalid.
 */
export function dkimKeyProblem(text: string): string | undefined {
  const expected = 'expected an RSA private key in PEM form, without a passphrase'
  try {
    return createPrivateKey(text).asymmetricKeyType === 'rsa' ? undefined : expected
  } catch {
    return expected
  }
}

/** The key in `text`. A file may have changed: throws a SinkError (`credentials`) that does not quote an invalid one. */
export function dkimKey(text: string): string {
  if (dkimKeyProblem(text) === undefined) return text
  throw new SinkError('credentials', 'the key of dkim is no RSA private key in PEM form')
}
