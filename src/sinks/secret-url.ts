import type { Secret } from '../lib/secret.ts'
import type { Work } from './attempt.ts'
import { checkedSecret, httpUrlProblem } from './common-config.ts'
import { SinkError } from './fault.ts'

/** An address that is the credential itself: whoever has it can post. */
export const secretUrlField = checkedSecret((text) => httpUrlProblem(text, { userinfo: false }))

/**
 * The address in `secret`, from now on hidden whole and in its parts. A file may hold anything by now, and errors about
 * bad addresses quote them: such a one is a SinkError (`credentials`) that calls it `what`.
 */
export function secretUrl(secret: Secret, what: string, work: Work): URL {
  const url = URL.parse(work.reveal(secret).trim())
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new SinkError('credentials', `${what} is no http or https address`)
  hideUrl(url, work)
  return url
}

/** A part shorter than this is a word of the service's own (`services`, `webhooks`) rather than a token. */
const tokenCharsMin = 16

export function hideUrl(url: URL, work: Work): void {
  const segments = url.pathname.split('/')
  const tokens = segments.filter(
    (segment, at) => segment.length >= tokenCharsMin || at === segments.length - 1,
  )
  const values = [...url.searchParams.values()].filter((value) => value.length >= tokenCharsMin)
  const search = url.search.length >= tokenCharsMin ? [url.search, url.search.slice(1)] : []
  const path = url.pathname.length >= tokenCharsMin ? [url.pathname] : []
  for (const text of [url.href, ...path, ...search, ...tokens, ...values]) hideWithDecoded(text, work)
}

/** Of an address that stands openly in the config, only the parts that look like a token. */
export function hideTokens(url: URL, work: Work): void {
  for (const part of [...url.pathname.split('/'), ...url.searchParams.values()])
    if (part.length >= tokenCharsMin) hideWithDecoded(part, work)
}

/** A part of an address may be repeated with its percent sequences or without. */
export function hideWithDecoded(text: string, work: Work): void {
  work.hide(text)
  work.hide(decoded(text))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
