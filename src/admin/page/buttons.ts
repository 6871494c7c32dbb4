import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type { PageWords } from './words/en.ts'
import type { ScriptWords } from './words/script.ts'

/**
 * A button that calls the API after it was confirmed; the script of the page does that, with the admin token that it asks for once.
 * Buttons are only shown where there is a token, since everything that changes something is off without one.
 */
interface ActionButton {
  readonly label: string
  /** What will happen, in the dialog. */
  readonly ask: string
  readonly method?: 'POST' | 'DELETE'
  readonly path: string
  /** Has the focus in turn with another one of that place, as Resume and Pause; absent: a button of its own. */
  readonly place?: string
  readonly body?: Readonly<Record<string, unknown>>
  readonly fields?: readonly ActionField[]
  /** Answers what would happen; asked again when a field changes. */
  readonly preview?: string
  /** Takes back what was done, if nobody has done other since; `:id` and `:until` are those of the answer. */
  readonly undo?: {
    readonly method: 'POST' | 'DELETE'
    readonly path: string
    readonly body?: Readonly<Record<string, unknown>>
    /** The body gets `for`: what is left until then. */
    readonly endsAt?: string
  }
}

interface ActionField {
  /** The place in the body, such as `match.symbol`; an empty value is left out. */
  readonly name: string
  readonly label: string
  readonly value: string
  readonly options?: readonly string[]
}

export function actionButton({ place, ...button }: ActionButton): Html {
  const { label, ...rest } = button
  // With a key, so that the one that has the focus stays what it is, whatever comes or goes before it.
  return html`<button type="button" class="act" data-key="${place ?? rest.path}" title="${rest.ask}" data-act="${JSON.stringify({ label, ...rest })}">${label}</button>`
}

/** Copies a command for the terminal. */
export function copyButton(words: PageWords, command: string): Html {
  return html`<button type="button" class="act copy" data-copy="${command}" title="${command}">${words.copyCommand}</button>`
}

export function buttonRow(canAct: boolean, buttons: readonly HtmlPart[]): HtmlPart {
  return canAct && buttons.length > 0 ? html`<div class="acts">${buttons}</div>` : null
}

/** The dialog of all buttons, beside `<main>`: the page is replaced while it is open. */
export function dialog(words: ScriptWords): Html {
  return html`<dialog id="act" aria-labelledby="act-title"><form method="dialog">
<h2 id="act-title"></h2><p id="act-ask"></p><div id="act-fields"></div>
<label id="act-token" hidden>${words.token}<input type="password" autocomplete="off" spellcheck="false"><small>${words.tokenNote}</small></label>
<p id="act-said" role="status"></p>
<div class="acts"><button type="button" class="act" id="act-undo" hidden>${words.undo}</button><button type="button" class="act" id="act-close">${words.cancel}</button><button type="submit" class="act go" id="act-go">${words.go}</button></div>
</form></dialog>`
}
