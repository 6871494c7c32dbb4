import { createHmac, randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { readSmallFile } from './small-file.ts'

/**
 * A value that cannot be printed: only `reveal` returns it, at the place of use. A secret in a file is read at every
 * `reveal`, so that a rotated file needs no restart.
 */
export class Secret {
  readonly #read: () => string
  /** The file that contains the value, when there is one. */
  readonly file: string | undefined

  constructor(value: string) {
    this.#read = () => value
    this.file = undefined
  }

  static fromFile(path: string): Secret {
    return new FileSecret(path)
  }

  /** Throws what `readSmallFile` throws when the value is in a file that cannot be read. */
  reveal(): string {
    return this.#read()
  }

  /**
   * Shows whether two secrets differ, without showing them: equal in this process when file and value are equal. `value` is
   * what `reveal` has just returned, where that was called already.
   */
  fingerprint(value?: string): string {
    const hash = createHmac('sha256', fingerprintKey).update(`${this.file ?? ''}\0`)
    try {
      return hash.update(value ?? this.reveal()).digest('hex')
    } catch {
      return hash.digest('hex')
    }
  }

  toString(): string {
    return '[redacted]'
  }

  toJSON(): string {
    return '[redacted]'
  }

  [inspect.custom](): string {
    return '[redacted]'
  }
}

class FileSecret extends Secret {
  override readonly file: string

  constructor(path: string) {
    super('')
    this.file = path
  }

  override reveal(): string {
    // Editors and `echo` end files with newlines, and some begin them with a byte order mark: no part of the secret.
    return readSmallFile(this.file, secretBytesMax)
      .replace(/^\ufeff/, '')
      .replace(/[\r\n]+$/, '')
  }
}

export const secretBytesMax = 65_536

/** Why `text` cannot be a token, which is sent in a header; never quotes it. */
export function tokenProblem(text: string): string | undefined {
  return /^[\x21-\x7e]+$/.test(text)
    ? undefined
    : 'expected a token: letters, digits and signs of ASCII, without blanks, line breaks and control characters'
}

/** Another key in every process, so that a guess cannot be checked against a fingerprint that leaked. */
const fingerprintKey = randomBytes(32)

/** A part of an address that is this long is rarely a word. */
export const tokenCharsMin = 16
const mixedCharsMin = 6

/**
 * Whether a part of an address may be a credential rather than a word (`services`, `v1`): long, or of letters and digits.
 */
export function looksLikeToken(part: string): boolean {
  return (
    part.length >= tokenCharsMin || (part.length >= mixedCharsMin && /\d/.test(part) && /\p{L}/u.test(part))
  )
}
