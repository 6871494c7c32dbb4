import { directionOf } from '../../alert/text.ts'

/**
 * HTML that is safe by construction: the value of a placeholder is escaped unless it is `Html` already, and invisible
 * control characters are removed from it. Placeholders are only used in text and in double-quoted attributes, never in a
 * tag's name, a script or a style.
 */
export interface Html {
  readonly html: string
}

export type HtmlPart = Html | string | number | false | null | undefined | readonly HtmlPart[]

export function html(parts: TemplateStringsArray, ...pieces: readonly HtmlPart[]): Html {
  return { html: parts.reduce((text, part, index) => `${text}${render(pieces[index - 1])}${part}`) }
}

/** Text from outside, in its own direction: that of most of its letters. The text around it keeps its direction. */
export function foreign(text: string): Html {
  return html`<bdi dir="${directionOf(text)}">${text}</bdi>`
}

/** A sentence of the bridge or of an operator's files, on a page in any language: all of it is written in English. */
export function english(text: string): Html {
  return html`<bdi dir="ltr" lang="en">${text}</bdi>`
}

/** A link to an address from outside. Only http and https become links; for anything else the text is shown. */
export function foreignLink(url: string, text: string): Html {
  const protocol = URL.canParse(url) ? new URL(url).protocol : ''
  if (protocol !== 'http:' && protocol !== 'https:') return foreign(text)
  return html`<a href="${url}" rel="noopener noreferrer" target="_blank">${foreign(text)}</a>`
}

function render(piece: HtmlPart): string {
  if (piece === undefined || piece === null || piece === false) return ''
  if (typeof piece === 'number') return String(piece)
  if (typeof piece === 'string')
    return piece
      .replace(/[\t\n\r]+/g, ' ')
      .replace(control, '')
      .replace(/[&<>"']/g, (each) => entities[each] ?? each)
  if (isList(piece)) return piece.map(render).join('')
  return piece.html
}

// Bidi overrides and isolates would reverse the text beside them; other control characters are shown as nothing or as
// boxes.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
const control = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function isList(piece: Html | readonly HtmlPart[]): piece is readonly HtmlPart[] {
  return Array.isArray(piece)
}
