import { isMapping } from '../../alert/json/json.ts'
import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type { SilenceView } from '../views/delivery-view.ts'
import { actionButton, buttonRow, copyButton } from './buttons.ts'
import { foreign } from './foreign.ts'
import { section } from './pieces.ts'
import type { Times } from './times.ts'
import type { PageWords } from './words/en.ts'

/** What is held back, or will be: the silence that ends first first. Without any, only the button that adds one. */
export function silencesSection(found: readonly SilenceView[], times: Times, canAct: boolean): HtmlPart {
  const { words } = times
  if (found.length === 0 && !canAct) return null
  const rest = found.length - silencesShownMax
  const more = rest > 0 ? html`<a href="/api/v1/silences">${words.idsMore(rest)}</a>` : null
  const none = found.length === 0 ? html`<span>${words.noSilences}</span>` : null
  const list = found.slice(0, silencesShownMax).map((silence) => item(silence, times, canAct))
  return section(
    'silences',
    words.silences,
    html`${more}${none}${canAct ? silenceButton(words.newSilence, {}, words) : null}`,
    list.length > 0 ? html`<div class="panel"><ol class="audit">${list}</ol></div>` : null,
  )
}

/** Adds a silence: the values that fields begin with can be changed, and one that is empty matches every alert. */
export function silenceButton(
  label: string,
  { symbol = '', kind = '', rule = '' }: { symbol?: string; kind?: string; rule?: string },
  words: PageWords,
): Html {
  const { fields } = words
  return actionButton({
    label,
    ask: words.silenceAsk,
    path: '/api/v1/silences',
    fields: [
      { name: 'match.symbol', label: fields.symbol, value: symbol },
      { name: 'match.kind', label: fields.kind, value: kind },
      { name: 'match.ruleId', label: fields.rule, value: rule },
      { name: 'for', label: fields.for, value: '1h', options: silenceSpans },
      { name: 'comment', label: fields.why, value: '' },
    ],
    preview: '/api/v1/silences/preview',
    undo: { method: 'DELETE', path: '/api/v1/silences/:id' },
  })
}

const silencesShownMax = 10
const silenceSpans = ['1h', '4h', '1d', '7d']

function item(silence: SilenceView, times: Times, canAct: boolean): Html {
  const { id, match, startsAt, endsAt, comment, problem } = silence
  const { words } = times
  const isAhead = Date.parse(startsAt) > times.nowMs
  const when = words.silenceTime(isAhead ? times.distance(startsAt) : null, times.distance(endsAt))
  return html`<li data-key="${id}">${matchText(match, words)}${comment ? words.quote(foreign(comment)) : null}<small><bdi dir="ltr">${id}</bdi>${words.dot}${when}</small>${problem === null ? null : html`<p class="reason">${words.fromBelow(problem)}</p>`}${buttonRow(
    canAct,
    [
      actionButton({
        label: words.endSilence,
        method: 'DELETE',
        path: `/api/v1/silences/${id}`,
        ask: words.endSilenceAsk(id),
        undo: { method: 'POST', path: '/api/v1/silences', body: { match, startsAt, endsAt, comment } },
      }),
      copyButton(words, `alert-bridge silence expire ${id}`),
    ],
  )}</li>`
}

/** `symbol فولاد · rule.name {"glob":"c*"}`: the fields by the names that the config has, too. */
function matchText(match: SilenceView['match'], words: PageWords): HtmlPart {
  const { rule, ...own } = match
  const ofRule = Object.entries(isMapping(rule) ? rule : {})
  const named = [...Object.entries(own), ...ofRule.map(([name, value]) => [`rule.${name}`, value] as const)]
  const parts = named.map(
    ([name, value], at) =>
      html`${at === 0 ? null : words.dot}<bdi dir="ltr">${name}</bdi> <b>${foreign(valueText(value, words))}</b>`,
  )
  return parts.length > 0 ? parts : html`<b>${words.everyAlert}</b>`
}

function valueText(value: unknown, words: PageWords): string {
  return [value]
    .flat()
    .map((each) => (isMapping(each) ? JSON.stringify(each) : String(each)))
    .join(words.list)
}
