import { looksLikeToken, type Secret, tokenCharsMin } from '../lib/secret.ts'
import { checkedSecret, httpUrlProblem } from './common-config.ts'
import type { AttemptHelpers } from './transport/attempt.ts'
import { SinkError } from './transport/fault.ts'

/** An address that is the credential itself: whoever has it can post. */
export const secretUrlField = checkedSecret((text) => httpUrlProblem(text, { userinfo: false }))

/**
 * The address in `secret`, from now on hidden whole and in its parts. A file may have changed, and library errors quote
 * invalid addresses: for one, throws a SinkError (`credentials`) that calls it `what`.
 */
export function secretUrl(secret: Secret, what: string, helpers: AttemptHelpers): URL {
  const url = URL.parse(helpers.reveal(secret).trim())
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new SinkError('credentials', `${what} is no http or https address`)
  hideUrl(url, helpers)
  return url
}

export function hideUrl(url: URL, helpers: AttemptHelpers): void {
  const segments = url.pathname.split('/')
  const tokens = segments.filter((segment, at) => looksLikeToken(segment) || at === segments.length - 1)
  const values = valuesIn(url)
  const search = url.search.length >= tokenCharsMin ? [url.search, url.search.slice(1)] : []
  const path = url.pathname.length >= tokenCharsMin ? [url.pathname] : []
  for (const text of [url.href, ...path, ...search, ...tokens, ...values]) hideWithDecoded(text, helpers)
  for (const text of [...tokens, ...values].flatMap((each) => credentialsIn(decoded(each))))
    helpers.hide(text)
}

/**
 * What may be a credential in an address that is no secret in the config, in each form that is to be hidden: parts of the path
 * that look like a token, and each value of the query.
 */
export function tokensIn(url: URL): readonly string[] {
  const parts = [...url.pathname.split('/').filter(looksLikeToken), ...valuesIn(url)]
  return parts.flatMap((part) => [part, decoded(part), ...credentialsIn(decoded(part))])
}

/**
 * What a receiver may repeat of a text with a credential in it (`Bearer KEY`, `Token token="KEY", id=7`, `desk:KEY`): what follows its
 * scheme, words that look like a token, and what follows a `=` or a colon. Of a longer text, only in its first words.
 */
export function credentialsIn(text: string): readonly string[] {
  const words = text.split(/[\s,;]/, wordsMax).map(unquoted)
  const rest = /^\S+\s+(.+)/s.exec(text)?.[1] ?? ''
  const values = words.flatMap((word) => [word.slice(word.search(/[=:]/) + 1), word.replace(/^.*[=:]/s, '')])
  const parts = [rest, ...words.filter(looksLikeToken), ...values.filter((value) => !words.includes(value))]
  return parts.map(unquoted).filter((part) => part !== '' && part !== text)
}

/** Each part costs a search of the answer. */
const wordsMax = 20

function unquoted(text: string): string {
  return text.replace(/^["']|["']$/g, '')
}

/**
 * The values of the query; of a part without a value (`?key`, or `?key==` in base64) its name, which may be the credential.
 */
function valuesIn(url: URL): string[] {
  return [...url.searchParams].map(([name, value]) => (/^=?$/.test(value) ? name : value))
}

/** The address of a proxy. A refusing proxy may repeat its login, as in the address or as it was sent: both are hidden. */
export function revealProxy(proxy: Secret | undefined, helpers: AttemptHelpers): string | undefined {
  if (proxy === undefined) return undefined
  const address = helpers.reveal(proxy).trim()
  const url = URL.parse(address)
  if (url !== null && (url.username !== '' || url.password !== '')) {
    for (const text of [url.href, `${url.username}:${url.password}`]) helpers.hide(text)
    helpers.hideWord(url.password)
    hideLogin(decoded(url.username), decoded(url.password), helpers)
  }
  return address
}

/** As it is, as it is sent, and its parts; of users, those that look like a key. */
export function hideLogin(user: string, password: string, helpers: AttemptHelpers): void {
  const login = `${user}:${password}`
  const sent = Buffer.from(login, 'utf8').toString('base64')
  for (const text of [login, sent, sent.replace(/=+$/, '')]) helpers.hide(text)
  if (looksLikeToken(user)) helpers.hide(user)
  helpers.hideWord(password)
}

/** A part of an address may be repeated with its percent sequences or without. */
function hideWithDecoded(text: string, helpers: AttemptHelpers): void {
  helpers.hide(text)
  helpers.hide(decoded(text))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
