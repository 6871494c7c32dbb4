import { cut } from '../alert/text.ts'
import { looksLikeToken } from '../lib/secret.ts'
import { soundsSecret } from './env.ts'
import { formatPath, mixesAll, type Path } from './mistake.ts'
import { childOf, isSecret, property, type Schema } from './outline.ts'
import type { ReadResult } from './read.ts'

/**
 * What stands at a path, in words that may be printed: never a secret, never the user or query of an address, never
 * what a variable holds whose name sounds like a secret's.
 */
export function describeFound(
  path: Path,
  root: Schema,
  reading: ReadResult,
  options: { quote: boolean },
): string {
  let schema: Schema | undefined = root
  let value = reading.value
  let secret = false
  for (const key of path) {
    schema = schema && childOf(schema, key, value)
    secret ||= schema === undefined || isSecret(schema)
    value = property(value, key)
  }
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (schema === undefined && typeof value === 'object') return 'a mapping'
  if (secret) return value === '' ? 'an empty text' : 'a value that is not shown'
  if (typeof value === 'object') return Object.keys(value).length === 0 ? 'an empty mapping' : 'a mapping'
  const filled = reading.locations.filled.get(formatPath(path))
  if (filled?.variables.some(soundsSecret))
    return `what ${filled.variables.join(', ')} holds, which is not shown`
  // Where a mapping belongs, any single value may be a secret that was indented wrongly.
  if (!options.quote) return typeof value === 'string' ? 'a text' : `a ${typeof value}`
  if (typeof value !== 'string') return String(value)
  return `${quote(value)}${filled === undefined ? '' : ` out of ${filled.variables.join(', ')}`}`
}

/**
 * An address without what may be a credential in it: user, password, the values of its query, and parts that look like a
 * token. Also one that is written wrongly, which is why it is shown.
 */
export function maskAddress(text: string): string {
  return maskBroken(text)
    .replace(/:\/\/[^\s]*@/g, '://[redacted]@')
    .replace(
      /(\w:\/\/[^\s/?#]*|^[a-z]+:?\/{1,2}[^\s/?#]*|^[\w-]+(?:\.[\w-]+)+(?::\d+)?(?=\/))([^\s?#]*)/gi,
      maskPath,
    )
    .replace(/([?&][^=&\s]+=)[^&\s#]+/g, '$1[redacted]')
    .replace(/(?<=[?&#])[^=&\s#]+(?=[&\s#]|$)/g, maskToken)
}

/** `user:password` and the token of a bot, in a place that is meant for the first half alone. */
function maskLogin(text: string): string {
  return text.replace(/^([\w.@+-]+):(?!\/\/)(?!\d+$)[^\s[\]]{5,}$/, '$1:[redacted]')
}

/** Of a template: in the body of a request a receiver's key may stand. */
function maskWords(text: string): string {
  return text.replace(/[^\s"'{}()|:;,=&./]+/g, maskToken)
}

function maskPath(_whole: string, origin: string, path: string): string {
  return origin + path.replace(/[^/]+/g, maskToken)
}

function maskToken(part: string): string {
  return looksLikeToken(part) ? '[redacted]' : part
}

const charsMax = 80
const maskedCharsMax = 4_000

/** Of an address with a blank in it, which is written wrongly, all that may be a token. */
function maskBroken(text: string): string {
  // A template is no address.
  if (text.includes('{{')) return text
  return /^\s*[a-z][a-z+]*:\/\/\S*\s/i.test(text) ? text.replace(/(?<=[^/]\/|\s)[^\s/?#]+/g, maskToken) : text
}

/** What nobody would choose for a name: a secret, then, that got to the wrong key. */
function looksRandom(text: string): boolean {
  return mixesAll(text, 16) || /^[\da-f]{32,}$/i.test(text)
}

function quote(text: string): string {
  // Nobody reads it, and what must be masked in it takes a search that goes back and forth.
  if (text.length > maskedCharsMax) return `a text of ${text.length} characters`
  if (looksRandom(text)) return 'a value that is not shown'
  const masked = maskLogin(maskAddress(text))
  const shown = /\{[{%]/.test(text) ? maskWords(masked) : masked
  return JSON.stringify(cut(shown, charsMax))
}
