/**
 * HTML that is safe by construction: the value of a placeholder is escaped unless it is `Html` already, and invisible
 * control characters are removed from it. Placeholders are only used in text and in double-quoted attributes, never in a
 * tag's name, a script or a style. Only texts of our own are made `Html` by its constructor.
 */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }
}

export type HtmlPart = Html | string | number | false | null | undefined | readonly HtmlPart[]

export function html(parts: TemplateStringsArray, ...pieces: readonly HtmlPart[]): Html {
  return new Html(parts.reduce((text, part, index) => `${text}${render(pieces[index - 1])}${part}`))
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
  return piece.markup
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
