import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import { instantOf, wallTime } from '../../lib/zone.ts'
import { type DeliveryFilter, type RowState, rowStates } from '../views/delivery-view.ts'
import type { Times } from './times.ts'
import { searchWords } from './words/search.ts'

/**
 * The form by which the list of alerts is searched. Its fields are the parameters of the page's address, so that what was found
 * can be shared, and it works without the script.
 */

/** What the address asks for. */
export interface DeliveriesFilter extends DeliveryFilter {
  readonly cursor?: string
}

/** What the form has to choose from. */
export interface SearchNames {
  readonly sinks: readonly string[]
  readonly sources: readonly string[]
}

export function searchForm(filter: DeliveriesFilter, { sinks, sources }: SearchNames, times: Times): Html {
  const { words } = times
  const { search, any, idForm, labels } = searchWords[words.language]
  const { cursor: _, ...asked } = filter
  // The keys: a reload of the config may bring more to choose from, while what was chosen is not asked for yet.
  // One for each text that is asked for: what the form leaves out would not be asked for any more.
  const typed = (name: 'symbol' | 'kind' | 'rule' | 'id', more?: HtmlPart) =>
    [filter[name] ?? '']
      .flat()
      .map(
        (text, nth) =>
          html`<label data-key="${name}${nth}">${labels[name]}<input name="${name}" value="${text}" maxlength="200" dir="auto" autocomplete="off" spellcheck="false"${more}></label>`,
      )
  const chosen = (name: 'sink' | 'source' | 'state', options: readonly (readonly [string, string])[]) =>
    html`<label data-key="${name}">${labels[name]}<select name="${name}"><option value="">${any}</option>${options.map(
      ([value, text]) =>
        html`<option data-key="${value}" value="${value}"${value === filter[name] ? html` selected` : null}>${text}</option>`,
    )}</select></label>`
  // The last time lets browsers go on to the hour after four digits of a year: most take six.
  const timed = (name: 'since' | 'until') =>
    html`<label data-key="${name}">${labels[name]}<input type="datetime-local" name="${name}" value="${localOf(filter[`${name}Ms`], times.timeZone)}" max="9999-12-31T23:59" title="${times.timeZone}"></label>`
  const stateText = (state: RowState) => (state === 'delayed' ? words.sentLater : words.rowStates[state])
  return html`<details class="search"${Object.keys(asked).length > 0 ? html` open` : null}><summary>${search}</summary>
<form role="search" action="/#deliveries">
${typed('symbol')}${typed('kind')}${typed('rule')}${typed('id', html` pattern="\\s*(.+\\.)?[0-9۰-۹٠-٩]{1,16}\\s*" title="${idForm}"`)}
${chosen('sink', named(sinks))}${sources.length > 1 || filter.source !== undefined ? chosen('source', named(sources)) : null}${chosen(
  'state',
  rowStates.map((each) => [each, stateText(each)]),
)}
${timed('since')}${timed('until')}
<button class="act go">${search}</button>
</form></details>`
}

/** What a form sends: local times are of the zone of the page, blanks around a text are not meant, and a field left empty asks for nothing. */
export function fromForm(name: string, value: unknown, timeZone: string): unknown {
  if (Array.isArray(value))
    return value.map((each) => fromForm(name, each, timeZone)).filter((each) => each !== '')
  if (typeof value !== 'string') return value
  const text = value.trim()
  const isLocal = (name === 'since' || name === 'until') && localTime.test(text)
  // Not of `25:00`, which may stand in an address, if not in the form.
  const wallMs = isLocal ? Date.parse(`${text}Z`) : Number.NaN
  return Number.isNaN(wallMs) ? text : new Date(instantOf(wallMs, timeZone)).toISOString()
}

const localTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/

function localOf(atMs: number | undefined, timeZone: string): string {
  if (atMs === undefined) return ''
  const text = new Date(wallTime(atMs, timeZone)).toISOString().slice(0, 19)
  return text.endsWith(':00') ? text.slice(0, 16) : text
}

function named(names: readonly string[]): [string, string][] {
  return names.map((name) => [name, name])
}
