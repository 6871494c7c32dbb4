import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import { directionOf } from '../../alert/text/text.ts'

/** Text from outside, in its own direction: that of most of its letters, however it is shown. The text around it keeps its direction. */
export function foreign(text: string, shown: HtmlPart = text): Html {
  return html`<bdi dir="${directionOf(text)}">${shown}</bdi>`
}

/** A sentence of the bridge or of an operator's files, on a page in any language: all of it is written in English. */
export function englishText(text: HtmlPart): Html {
  return html`<bdi dir="ltr" lang="en">${text}</bdi>`
}

/**
 * A reason such as `server_error: 503 moved`: its first word in the language of the page, what the receiver said as it came. A text
 * that begins with no known reason is shown by `other`.
 */
export function failure(
  text: string,
  reasons: Readonly<Record<string, string>>,
  other: (text: string) => HtmlPart = foreign,
): HtmlPart {
  const [, word = '', said] = /^(\w+)(?:: (.*))?$/s.exec(text) ?? []
  if (!Object.hasOwn(reasons, word)) return other(text)
  return html`${reasons[word]}${said ? html`: ${foreign(said)}` : null}`
}

/** A link to an address from outside. Only http and https become links; for anything else the text is shown. */
export function foreignLink(url: string, text: string): Html {
  const protocol = URL.canParse(url) ? new URL(url).protocol : ''
  if (protocol !== 'http:' && protocol !== 'https:') return foreign(text)
  return html`<a href="${url}" rel="noopener noreferrer" target="_blank">${foreign(text)}</a>`
}
