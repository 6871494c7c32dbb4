import type { LetterGroupsView, LetterGroupView } from '../delivery-view.ts'
import { actionButton, buttonRow, copyButton } from './buttons.ts'
import { foreign, type Html, type HtmlPart, html } from './html.ts'
import { section } from './pieces.ts'
import { formatCount, plural, type Times } from './times.ts'

/** Dead letters by sink and reason; nothing where there are none. */
export function deadLettersSection(found: LetterGroupsView, times: Times, canAct: boolean): HtmlPart {
  const { data, looked, total } = found
  if (data.length === 0) return null
  const aside =
    looked < total ? `grouped from the newest ${formatCount(looked)} of ${formatCount(total)}` : null
  const heads = ['Sink', 'Reason', 'Count', 'First', 'Last', 'A sample']
  return section(
    'dead-letters',
    'Dead letters',
    aside,
    html`<div class="panel"><table class="letters"><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${data.map((group) => row(group, times, canAct))}</tbody></table></div>`,
  )
}

function row(group: LetterGroupView, times: Times, canAct: boolean): Html {
  const { sink, reason, count, firstAt, lastAt, sample, sampleAlert } = group
  const story = html`<a href="/alerts/${sampleAlert.source}/${sampleAlert.id}">${sampleAlert.source}.${sampleAlert.id}</a>`
  return html`<tr><th scope="row">${sink}</th><td data-label="Reason">${reason}</td>
<td class="number failed" data-label="Count">${formatCount(count)}</td>
<td data-label="First">${times.distance(firstAt)}</td><td data-label="Last">${times.distance(lastAt)}</td>
<td data-label="A sample">${story}<small class="answer">${foreign(sample)}</small>${buttonRow(canAct, buttonsOf(group))}</td></tr>`
}

function buttonsOf({ sink, reason, count }: LetterGroupView): Html[] {
  const body = { sink, reason }
  const letters = `${plural(count, 'dead letter')} of ${sink} (${reason})`
  return [
    actionButton({
      ...{ label: 'Retry group', path: '/api/v1/dead-letters/retry', body },
      ask: `${letters} go back into the queue, with fresh attempts; also those that came meanwhile.`,
    }),
    actionButton({
      ...{ label: 'Drop group', path: '/api/v1/dead-letters/drop', body },
      ask: `${letters} are deleted for ever; also those that came meanwhile.`,
    }),
    copyButton(`alert-bridge dead-letters retry --sink ${sink} --reason ${reason}`),
  ]
}
