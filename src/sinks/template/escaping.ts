import { JsonNumber } from '../../alert/json/json-number.ts'

/**
 * What becomes of `{{ value }}`. In a body, `{{ value | raw }}` stays as it is, and so does `{{ value | json }}` outside
 * of quotation marks; in an address nothing does.
 */
export type Escaping = 'json' | 'markup' | 'form' | 'none' | 'url'

export function escapingOf(contentType: string): Escaping {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^application\/json$|\+json$/.test(type)) return 'json'
  if (/^(text\/html|text\/xml|application\/xml)$|\+xml$/.test(type)) return 'markup'
  return type === 'application/x-www-form-urlencoded' ? 'form' : 'none'
}

/**
 * `value` as it is written. In JSON: as text between quotation marks, where null is nothing, and outside of them as the
 * JSON that it is, whatever its type; so no value makes JSON that cannot be read.
 */
export function escaped(escaping: Escaping, value: unknown, inString: boolean): string {
  switch (escaping) {
    case 'json':
      return inString ? JSON.stringify(plain(value)).slice(1, -1) : asJson(value)
    case 'markup':
      return plain(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
    case 'form':
    case 'url':
      return encodeURIComponent(plain(value).toWellFormed())
    case 'none':
      return plain(value)
    default:
      return escaping satisfies never
  }
}

/** `value` as people read it. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' && !(value instanceof JsonNumber) ? JSON.stringify(value) : String(value)
}

export function asJson(value: unknown): string {
  return JSON.stringify(value) ?? 'null'
}
