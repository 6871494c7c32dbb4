import { alertKey } from '../../alert/alert.ts'
import { datedAt } from '../../alert/fired-at.ts'
import { formatDuration } from '../../lib/duration.ts'
import { type DeliveryRow, type RowState, rowStates } from '../delivery-view.ts'
import { foreign, foreignLink, type Html, type HtmlPart, html } from './html.ts'
import { type IconName, icon, section, type Tone } from './pieces.ts'
import type { Times } from './times.ts'

/** The alerts whose deliveries changed last, each with its state at the sinks that are among these changes. */
export interface DeliveriesFilter {
  readonly state?: RowState
  readonly sink?: string
}

export function deliveriesSection(
  rows: readonly DeliveryRow[] | undefined,
  filter: DeliveriesFilter,
  times: Times,
): Html {
  return section(
    'deliveries',
    'Latest alerts',
    filters(filter),
    html`<div class="panel">${list(rows, filter, times)}</div>`,
  )
}

/** Groups rows by alert. The last alert of a full page is left out: the rows of some of its sinks may be missing. */
export function groupByAlert(
  rows: readonly DeliveryRow[],
  rowsMax: number,
): readonly (readonly DeliveryRow[])[] {
  const groups = new Map<string, DeliveryRow[]>()
  for (const row of rows) {
    const group = groups.get(alertKey(row))
    if (group) group.push(row)
    else groups.set(alertKey(row), [row])
  }
  const all = [...groups.values()]
  return rows.length >= rowsMax && all.length > 1 ? all.slice(0, -1) : all
}

/** How many rows are read, and how many alerts of these are shown. */
export const deliveryRowsMax = 120
const alertsMax = 30

export const states: Record<RowState, readonly [Tone, IconName, string]> = {
  waiting: ['calm', 'clock', 'waiting'],
  active: ['calm', 'arrow', 'sending'],
  delayed: ['warning', 'alert', 'to retry'],
  delivered: ['ok', 'check', 'delivered'],
  dead: ['failed', 'cross', 'dead'],
  held: ['warning', 'pause', 'held back'],
}

function list(rows: readonly DeliveryRow[] | undefined, filter: DeliveriesFilter, times: Times): Html {
  if (!rows) return html`<p class="empty">The deliveries cannot be read now.</p>`
  if (rows.length === 0)
    return html`<p class="empty">${filter.state || filter.sink ? 'None like that.' : 'No alert was seen yet.'}</p>`
  // In the order of firing, so that a row stays where it is while its deliveries change.
  const alerts = groupByAlert(rows, deliveryRowsMax)
    .slice(0, alertsMax)
    .sort(([a], [b]) => orderMs(b) - orderMs(a))
  return html`<ol class="alerts">${alerts.map((group) => alertItem(group, times))}</ol>`
}

function orderMs(row: DeliveryRow | undefined): number {
  return row === undefined ? 0 : (datedAt(row.firedAt) ?? Date.parse(row.seenAt ?? '')) || 0
}

function alertItem(group: readonly DeliveryRow[], times: Times): HtmlPart {
  const [alert] = group
  if (!alert) return null
  // The same order on every line, so that a reader finds a sink.
  const inOrder = group.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
  const address = `/alerts/${encodeURIComponent(alert.source)}/${alert.id}`
  return html`<li data-key="${alertKey(alert)}">
${when(alert, times)}
<div class="what"><p class="title">${foreignLink(alert.url, alert.headline)}</p>
<p class="meta">${alert.symbol ? html`<b>${foreign(alert.symbol)}</b>` : null}<span>${foreign(alert.kind)}</span><a href="${address}">${alertKey(alert)}</a>${seen(alert)}</p></div>
<ul class="chips">${inOrder.map(chip)}</ul>
${inOrder.filter((row) => row.reason).map((row) => trouble(row, times))}
</li>`
}

/** A time that is not possible is shown as the API sent it. */
function when({ firedAt }: DeliveryRow, times: Times): Html {
  if (datedAt(firedAt) === null) return html`<p class="when">${foreign(firedAt)}</p>`
  const day = times.isToday(firedAt) ? times.distance(firedAt) : html`<time>${times.date(firedAt)}</time>`
  return html`<p class="when"><time datetime="${firedAt}"><b>${times.clock(firedAt)}</b></time>${day}</p>`
}

function seen({ firedAt, seenAt }: DeliveryRow): HtmlPart {
  const firedMs = datedAt(firedAt)
  const ms = seenAt === null || firedMs === null ? -1 : Date.parse(seenAt) - firedMs
  return ms < 0 ? null : html`<span>seen after ${formatDuration(ms)}</span>`
}

function chip(row: DeliveryRow): Html {
  const [tone, name, word] = states[row.state]
  const tries = row.attempts > 1 ? html`<i>×${row.attempts}</i>` : null
  return html`<li class="chip ${tone}" title="${nameOf(row)}: ${word}">${icon(name)}${nameOf(row)}${tries}<span class="hidden">: ${word}</span></li>`
}

function trouble(row: DeliveryRow, times: Times): Html {
  const next = row.nextAttemptAt ? html`, next try ${times.distance(row.nextAttemptAt)}` : null
  const [tone] = states[row.state]
  return html`<p class="trouble ${tone}">${nameOf(row)}: ${foreign(row.reason ?? '')}${next}</p>`
}

function nameOf({ sink, target }: DeliveryRow): string {
  return target === undefined ? sink : `${sink} → ${target}`
}

function filters({ state, sink }: DeliveriesFilter): Html {
  const link = (text: string, query: Record<string, string>, current: boolean) =>
    html`<a href="?${new URLSearchParams(query).toString()}#deliveries"${current ? html` aria-current="true"` : null}>${text}</a>`
  const bySink: Record<string, string> = sink === undefined ? {} : { sink }
  return html`<nav class="filters" aria-label="Filter by state">${sink === undefined ? null : html`<span>${sink}</span>`}${link('all', {}, !state && !sink)}${rowStates.map(
    (each) => link(states[each][2], { ...bySink, state: each }, each === state),
  )}</nav>`
}
