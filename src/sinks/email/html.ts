/** Markup that is put into a page unchanged; everything else is escaped. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }
}

type HtmlPart = string | number | Html | readonly Html[]

/** Builds markup from a template whose every string is escaped: upstream text cannot become markup by oversight. */
export function html(literals: TemplateStringsArray, ...pieces: readonly HtmlPart[]): Html {
  return new Html(literals.map((literal, index) => literal + markupOf(pieces[index] ?? '')).join(''))
}

function markupOf(piece: HtmlPart): string {
  if (piece instanceof Html) return piece.markup
  if (typeof piece === 'string' || typeof piece === 'number') return escapeHtml(String(piece))
  return piece.map((each) => each.markup).join('')
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
