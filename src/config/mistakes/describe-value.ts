import { property } from '../../alert/json/json.ts'
import { cut } from '../../alert/text/text.ts'
import { looksLikeToken } from '../../lib/secret.ts'
import { withoutNamedSecrets } from '../../telemetry/named-secrets.ts'
import { looksRandom } from '../conceal.ts'
import { soundsSecret } from '../file/env.ts'
import type { ReadResult } from '../file/read.ts'
import { childOf, isSecret, metaOf, type Schema } from '../outline.ts'
import { formatPath, type Path } from './mistake.ts'

/**
 * Describes the value at a path in words that may be printed: never a secret, never the user or query of an address,
 * never the content of a variable whose name sounds like that of a secret.
 */
export function describeFound(
  path: Path,
  root: Schema,
  reading: ReadResult,
  options: { quote: boolean },
): string {
  let schema: Schema | undefined = root
  let value = reading.value
  let [secret, compared] = [false, false]
  for (const key of path) {
    schema = schema && childOf(schema, key, value)
    secret ||= schema === undefined || isSecret(schema)
    compared ||= schema !== undefined && metaOf(schema).fieldKind === 'match'
    value = property(value, key)
  }
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (schema === undefined && typeof value === 'object') return 'a mapping'
  if (secret) return value === '' ? 'an empty text' : 'a value that is not shown'
  if (typeof value === 'object') return Object.keys(value).length === 0 ? 'an empty mapping' : 'a mapping'
  const filled = reading.locations.filled.get(formatPath(path))
  if (filled?.variables.some(soundsSecret)) return `${heldIn(filled.variables)}, which is not shown`
  // Where a mapping is expected, a single value may be a secret that was indented wrongly.
  if (!options.quote) return typeof value === 'string' ? 'a text' : `a ${typeof value}`
  if (typeof value !== 'string') return String(value)
  return `${quote(value, { compared })}${filled === undefined ? '' : ` out of ${filled.variables.join(', ')}`}`
}

/** How a mistake names a value that comes from these variables. */
export function heldIn(variables: readonly string[]): string {
  return `what ${variables.join(', ')} holds`
}

/**
 * An address without all that may be a credential: user, password, the values of its query (the name of a part without one, `?key`),
 * and parts that look like a token. It also masks an address that is not valid, since just such an address is shown in a mistake.
 */
export function maskAddress(text: string): string {
  return maskBroken(text)
    .replace(/:\/\/[^\s]*@/g, '://[redacted]@')
    .replace(
      /(\w:\/\/[^\s/?#]*|^[a-z]+:?\/{1,2}[^\s/?#]*|^[\w-]+(?:\.[\w-]+)+(?::\d+)?(?=\/))([^\s?#]*)/gi,
      maskPath,
    )
    .replace(/[^\s"<>]+/g, maskKey)
    .replace(/([?&][^=&\s]+=)[^&\s#]+/g, '$1[redacted]')
    .replace(/(?<=#)[^=&\s#]+(?=[&\s#]|$)/g, maskToken)
}

/** Masks the second part of `user:password`, or of a bot's `id:token`, in a field that is meant for the first part. */
function maskLogin(text: string): string {
  if (time.test(text)) return text
  return text.replace(/^([\w.@+-]+):(?!\/\/)(?!\d+$)[^\s[\]]{5,}$/, '$1:[redacted]')
}

/** Also one without its offset. */
const time = /^(\d{4}-\d\d-\d\dT)?\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?$/

/** For templates: the body of a request may contain a receiver's key. */
function maskWords(text: string): string {
  return text.replace(/[^\s"'{}()|:;,=&./]+/g, maskToken)
}

/**
 * Masks `?key` and `?key==`. In a text of several words, or with marks of a template, only after a slash or a dot within a name, or
 * where the text begins with it: elsewhere `?` and `&` are marks of a sentence or of a page.
 */
function maskKey(word: string, at: number, text: string): string {
  const isAddress = (word === text && !word.includes('{')) || (at === 0 && /^[?&]/.test(word))
  const from = isAddress ? 0 : word.search(/\/|[\p{L}\p{N}]\.[\p{L}\p{N}]/u)
  if (from === -1) return word
  const key = /(?<=[?&])(?!\{[{%])[^=&#]{6,}={0,2}(?=[&#]|$)/g
  return word.slice(0, from) + word.slice(from).replace(key, '[redacted]')
}

function maskPath(_whole: string, origin: string, path: string): string {
  return origin + path.replace(/[^/]+/g, maskToken)
}

function maskToken(part: string): string {
  return looksLikeToken(part) ? '[redacted]' : part
}

const charsMax = 80
const maskedCharsMax = 4_000

/** Masks all that may be a token in an address that is not valid because it has a blank in it. */
function maskBroken(text: string): string {
  // A template is no address.
  if (text.includes('{{')) return text
  return /^\s*[a-z][a-z+]*:\/\/\S*\s/i.test(text) ? text.replace(/(?<=[^/]\/|\s)[^\s/?#]+/g, maskToken) : text
}

function quote(text: string, { compared }: { compared: boolean }): string {
  // Nobody reads so long a text, and the patterns that mask it would take long.
  if (text.length > maskedCharsMax) return `a text of ${text.length} characters`
  if (looksRandom(text)) return 'a value that is not shown'
  const masked = compared && !text.includes('://') ? text : maskLogin(maskAddress(text))
  const shown = /\{[{%]/.test(text) ? maskWords(masked) : masked
  return JSON.stringify(cut(withoutNamedSecrets(shown), charsMax))
}
