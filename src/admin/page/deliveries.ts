import { alertKey } from '../../alert/alert.ts'
import { datedAt } from '../../alert/fired-at.ts'
import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import { type DeliveryPage, type DeliveryRow, type RowState, rowStates } from '../views/delivery-view.ts'
import { failure, foreign, foreignLink } from './foreign.ts'
import { type IconName, icon, section, type Tone } from './pieces.ts'
import { type DeliveriesFilter, type SearchNames, searchForm } from './search.ts'
import type { Times } from './times.ts'
import type { PageWords } from './words/en.ts'

/** The alerts that fired last, each with its state at its sinks; or those that the address asks for. */
export function deliveriesSection(
  page: DeliveryPage | undefined,
  filter: DeliveriesFilter,
  names: SearchNames,
  times: Times,
): Html {
  const older =
    page?.cursor === undefined
      ? null
      : linkTo(times.words.olderLink, { ...filter, cursor: page.cursor }, false)
  return section(
    'deliveries',
    filter.cursor === undefined ? times.words.latest : times.words.older,
    filters(filter, times),
    html`${searchForm(filter, names, times)}<div class="panel">${list(page, filter, times)}${older ? html`<p class="more">${older}</p>` : null}</div>`,
  )
}

/** How many rows are read. */
export const deliveryRowsMax = 60

const states: Record<RowState, readonly [Tone, IconName]> = {
  waiting: ['calm', 'clock'],
  active: ['calm', 'arrow'],
  delayed: ['warning', 'alert'],
  delivered: ['ok', 'check'],
  dead: ['failed', 'cross'],
  held: ['warning', 'pause'],
}

/** An alert that waits for the time of its digest is delayed as one that is tried again is, but nothing went wrong with it. */
export function badgeOf(
  state: RowState,
  wasTried: boolean,
  words: PageWords,
): readonly [Tone, IconName, string] {
  return state === 'delayed' && !wasTried
    ? [...states.waiting, words.sentLater]
    : [...states[state], words.rowStates[state]]
}

function list(page: DeliveryPage | undefined, filter: DeliveriesFilter, times: Times): Html {
  if (!page) return html`<p class="empty">${times.words.noDeliveries}</p>`
  const { data: rows, looked, cursor } = page
  if (rows.length === 0) return html`<p class="empty">${noneText()}</p>`
  const alerts = Map.groupBy(rows, alertKey).values()
  return html`<ol class="alerts">${[...alerts].map((group) => alertItem(group, times))}</ol>`

  // One page of a search looks at so many alerts only: what it did not find may be further down.
  function noneText(): string {
    const { words } = times
    if (cursor !== undefined) return words.noneAmong(looked)
    return Object.keys(filter).length > 0 ? words.noneLikeThat : words.noneYet
  }
}

function alertItem(group: readonly DeliveryRow[], times: Times): HtmlPart {
  const [alert] = group
  if (!alert) return null
  // The same order on every line, so that a reader finds a sink.
  const inOrder = group.toSorted((a, b) => (nameOf(a, times.words) < nameOf(b, times.words) ? -1 : 1))
  const address = `/alerts/${encodeURIComponent(alert.source)}/${alert.id}`
  return html`<li data-key="${alertKey(alert)}">
${when(alert, times)}
<div class="what"><p class="title">${foreignLink(alert.url, alert.headline)}</p>
<p class="meta">${alert.symbol ? html`<b>${linkTo(foreign(alert.symbol), { symbol: [alert.symbol] }, false)}</b>` : null}${alert.kind ? linkTo(foreign(alert.kind), { kind: [alert.kind] }, false) : null}<a href="${address}">${alertKey(alert)}</a>${seen(alert, times.words)}</p></div>
<ul class="chips">${inOrder.map((row) => chip(row, times.words))}</ul>
${inOrder.filter((row) => row.reason).map((row) => trouble(row, times))}
</li>`
}

/** A time that is not possible is shown as the API sent it. */
function when({ firedAt }: DeliveryRow, times: Times): Html {
  if (datedAt(firedAt) === null) return html`<p class="when">${foreign(firedAt)}</p>`
  const day = times.isToday(firedAt) ? times.distance(firedAt) : html`<time>${times.date(firedAt)}</time>`
  return html`<p class="when"><time datetime="${firedAt}"><b>${times.clock(firedAt)}</b></time>${day}</p>`
}

function seen({ firedAt, seenAt }: DeliveryRow, words: PageWords): HtmlPart {
  const firedMs = datedAt(firedAt)
  const ms = seenAt === null || firedMs === null ? -1 : Date.parse(seenAt) - firedMs
  return ms < 0 ? null : html`<span>${words.seenAfter(words.duration(ms))}</span>`
}

function chip(row: DeliveryRow, words: PageWords): Html {
  const [tone, name, word] = badgeOf(row.state, row.attempts > 0 || row.reason !== null, words)
  const tries = row.attempts > 1 ? html`<i>×${words.count(row.attempts)}</i>` : null
  return html`<li class="chip ${tone}" title="${nameOf(row, words)}: ${word}">${icon(name)}<bdi>${nameOf(row, words)}</bdi>${tries}<span class="hidden">: ${word}</span></li>`
}

function trouble(row: DeliveryRow, times: Times): Html {
  const next = row.nextAttemptAt
    ? html`${times.words.list}${times.words.nextTry(times.distance(row.nextAttemptAt))}`
    : null
  const [tone] = states[row.state]
  const { words } = times
  const { reason: text, withheld } = row
  const why = withheld
    ? words.held({ ...withheld, text: text ?? '' }, times.moment)
    : failure(text ?? '', words.reasons)
  return html`<p class="trouble ${tone}"><bdi>${nameOf(row, words)}</bdi>: ${why}${next}</p>`
}

function nameOf({ sink, target, withheld }: DeliveryRow, words: PageWords): string {
  if (withheld?.reason === 'unrouted') return words.noSink
  return target === undefined ? sink : `${sink} → ${target}`
}

function filters({ cursor: _, state, ...filter }: DeliveriesFilter, times: Times): Html {
  const { words } = times
  const asked = Object.entries(filter).map(
    ([name, value]) =>
      html`<span>${name === 'sink' ? '' : `${words.filters[nameIn(name)] ?? nameIn(name)} `}${typeof value === 'number' ? inFull(textOf(value), times) : foreign(textOf(value))}</span>`,
  )
  return html`<nav class="filters" aria-label="${words.filterLabel}">${asked}${linkTo(words.all, {}, !state && asked.length === 0)}${rowStates.map(
    (each) =>
      linkTo(
        each === 'delayed' ? words.sentLater : words.rowStates[each],
        { ...filter, state: each },
        each === state,
      ),
  )}</nav>`
}

function inFull(iso: string, times: Times): Html {
  return html`<time datetime="${iso}">${times.date(iso)} ${times.clock(iso)}</time>`
}

function linkTo(text: HtmlPart, filter: DeliveriesFilter, current: boolean): Html {
  const pairs = Object.entries(filter).flatMap(([name, value]) => {
    return [value].flat().map((each): [string, string] => [nameIn(name), textOf(each)])
  })
  const query = new URLSearchParams(pairs).toString()
  return html`<a href="${query ? `?${query}` : '/'}#deliveries"${current ? html` aria-current="true"` : null}>${text}</a>`
}

/** As an address has it. */
function nameIn(field: string): string {
  return field.replace(/Ms$/, '')
}

function textOf(value: string | number | readonly string[]): string {
  return typeof value === 'number' ? new Date(value).toISOString() : [value].flat().join(', ')
}
