import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type { LetterGroupsView, LetterGroupView } from '../views/delivery-view.ts'
import { actionButton, buttonRow, copyButton } from './buttons.ts'
import { failure } from './foreign.ts'
import { section } from './pieces.ts'
import type { Times } from './times.ts'
import type { PageWords } from './words/en.ts'

/** Dead letters by sink and reason; nothing where there are none. */
export function deadLettersSection(found: LetterGroupsView, times: Times, canAct: boolean): HtmlPart {
  const { data, looked, total } = found
  if (data.length === 0) return null
  const { words } = times
  const areMore = looked < total
  const aside = areMore ? words.grouped(looked, total) : null
  return section(
    'dead-letters',
    words.letters,
    aside,
    html`<div class="panel"><table class="letters"><thead><tr>${Object.values(words.letterHeads).map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${data.map((group) => row(group, areMore, times, canAct))}</tbody></table></div>`,
  )
}

function row(group: LetterGroupView, areMore: boolean, times: Times, canAct: boolean): Html {
  const { sink, reason, count, firstAt, lastAt, sample, sampleAlert } = group
  const { words } = times
  const { count: figure, letterHeads: heads } = words
  const story = html`<a href="/alerts/${sampleAlert.source}/${sampleAlert.id}">${sampleAlert.source}.${sampleAlert.id}</a>`
  return html`<tr data-key="${sink} ${reason}"><th scope="row">${sink}</th><td data-label="${heads.reason}">${failure(reason, words.reasons, words.fromBelow)}</td>
<td class="number failed" data-label="${heads.count}">${figure(count)}</td>
<td data-label="${heads.first}">${times.distance(firstAt)}</td><td data-label="${heads.last}">${times.distance(lastAt)}</td>
<td class="wide" data-label="${heads.sample}">${story}<small class="answer">${failure(sample, words.reasons)}</small>${buttonRow(canAct, buttonsOf(group, areMore, words))}</td></tr>`
}

/** An order is for the whole group. `areMore`: there may be more of it than were counted. */
function buttonsOf({ sink, reason, count }: LetterGroupView, areMore: boolean, words: PageWords): Html[] {
  const body = { sink, reason }
  const where = `${sink} (${words.reasons[reason] ?? reason})`
  return [
    actionButton({
      label: words.retryGroup,
      path: '/api/v1/dead-letters/retry',
      body,
      ask: words.retryAsk(count, where, areMore),
    }),
    actionButton({
      label: words.dropGroup,
      path: '/api/v1/dead-letters/drop',
      body,
      ask: words.dropAsk(count, where, areMore),
    }),
    copyButton(words, `alert-bridge dead-letters retry --sink ${sink} --reason ${reason}`),
  ]
}
