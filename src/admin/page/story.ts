import { alertKey } from '../../alert/alert.ts'
import { datedAt } from '../../alert/fired-at.ts'
import { formatDuration } from '../../lib/duration.ts'
import type { AlertHistory, AttemptView, DeliveryHistory, WithheldView } from '../delivery-view.ts'
import { auditList } from './audit.ts'
import { actionButton, buttonRow, copyButton, silenceSpans } from './buttons.ts'
import { states } from './deliveries.ts'
import { foreign, foreignLink, type Html, type HtmlPart, html } from './html.ts'
import { badge, section } from './pieces.ts'
import { formatSeconds, type Times } from './times.ts'

/** The whole story of one alert: fired, seen, held back or sent, every attempt with its answer, and what operators did. */
export function storyOf(history: AlertHistory, times: Times, canAct: boolean): Html {
  const name = alertKey(history)
  const { deliveries, held, actions } = history
  return html`${backLink}
<header class="story" id="top"><h1>${foreignLink(history.url, history.headline)}</h1>
<p class="meta">${history.symbol ? html`<b>${foreign(history.symbol)}</b>` : null}<span>${foreign(history.kind)}</span><span>${name}</span>${history.ruleIds.length > 0 ? html`<span>rules ${foreign(history.ruleIds.join(', '))}</span>` : null}</p>
${history.why ? html`<p class="reason">${foreign(history.why)}</p>` : null}
<ol class="steps">${fired(history, times)}${seen(history, times)}${held.map(heldStep)}${nobody(history)}</ol>
${buttonRow(canAct, [silenceButton(history), copyButton(`alert-bridge deliveries ${name}`)])}</header>
${section(
  'sinks',
  'Deliveries',
  null,
  html`<div class="cards">${deliveries.map((each) => delivery(each, name, times, canAct))}${heldSinks(history).map((sink) => heldCard(sink, name, canAct))}</div>`,
)}
${actions.length > 0 ? section('actions', 'What operators did', null, auditList(actions, times)) : null}`
}

export const backLink = html`<nav class="back"><a href="/#deliveries">← all alerts</a></nav>`

function fired({ firedAt }: AlertHistory, times: Times): Html {
  return html`<li><b>fired</b> ${datedAt(firedAt) === null ? foreign(firedAt) : moment(firedAt, times)}</li>`
}

function seen({ firedAt, seenAt, page }: AlertHistory, times: Times): HtmlPart {
  if (seenAt === null) return null
  const firedMs = datedAt(firedAt)
  const afterMs = firedMs === null ? -1 : Date.parse(seenAt) - firedMs
  const after = afterMs < 0 ? null : html`, ${formatDuration(afterMs)} later`
  return html`<li><b>seen</b> by the poll of ${moment(seenAt, times)}${page === null || page === 1 ? null : ` on page ${page}`}${after}</li>`
}

function heldStep({ sinks, text }: WithheldView): Html {
  return html`<li class="warning"><b>held back</b> ${sinks.length > 0 ? html`from ${sinks.join(', ')}: ` : null}${foreign(text)}</li>`
}

function nobody({ deliveries, held }: AlertHistory): HtmlPart {
  return deliveries.length === 0 && held.length === 0
    ? html`<li class="warning">no route named a sink for it</li>`
    : null
}

/** The time of day, with the date where it is not today's. */
function moment(iso: string, times: Times): Html {
  const date = times.isToday(iso) ? null : html`${times.date(iso)} `
  return html`<time datetime="${iso}">${date}${times.clock(iso)}</time> (${times.distance(iso)})`
}

function delivery(part: DeliveryHistory, name: string, times: Times, canAct: boolean): Html {
  const { sink, target, routes, state, attempts, nextAttemptAt, requestedAt } = part
  const [tone, icon, word] = states[state]
  const next = nextAttemptAt ? html`<p class="reason">next try ${times.distance(nextAttemptAt)}</p>` : null
  return html`<article class="card"><header class="row"><h3>${sink}${target === undefined ? null : html` → ${foreign(target)}`}</h3>${badge(tone, icon, word)}</header>
${routes === null ? null : html`<p class="reason">by ${routes.length === 1 ? 'route' : 'routes'} ${foreign(routes.join(', '))}</p>`}${next}${attempts.length === 0 ? html`<p class="reason">nothing was sent yet</p>` : html`<ol class="attempts">${attempts.map((each, at) => [roundMark(each, attempts[at - 1], requestedAt, times), attempt(each, times)])}</ol>`}
${buttonRow(canAct, buttonsOf(part, name))}</article>`
}

/** Before the first attempt after an operator asked for the alert to be sent again. */
function roundMark(
  { round }: AttemptView,
  before: AttemptView | undefined,
  requestedAt: string | null,
  times: Times,
): HtmlPart {
  if (round === 1 || before?.round === round) return null
  const at = requestedAt === null ? null : html`, the last time ${times.distance(requestedAt)}`
  return html`<li class="round">sent again by an operator${at}</li>`
}

function attempt(
  { number, at, durationSeconds, outcome, reason, status, text }: AttemptView,
  times: Times,
): Html {
  const tone = outcome === 'delivered' ? 'ok' : outcome === 'dead' ? 'failed' : 'warning'
  const word = { delivered: 'delivered', retry: 'to be tried again', dead: 'given up' }[outcome]
  return html`<li><span class="number">${number}.</span> <span class="${tone}">${word}</span> ${status === null ? null : html`<b>${status}</b> `}${reason ? html`${foreign(reason)} ` : null}<small>${moment(at, times)}, took ${formatSeconds(durationSeconds)}</small>${text ? html`<small class="answer">${foreign(text)}</small>` : null}</li>`
}

function buttonsOf({ sink, state }: DeliveryHistory, name: string): Html[] {
  const body = { ids: [name], sink }
  if (state === 'dead')
    return [
      actionButton({
        ...{ label: 'Retry', path: '/api/v1/dead-letters/retry', body },
        ask: `${name} goes back into the queue of ${sink}, with fresh attempts.`,
      }),
      actionButton({
        ...{ label: 'Drop', path: '/api/v1/dead-letters/drop', body },
        ask: `The dead letter of ${name} at ${sink} is deleted for ever.`,
      }),
      copyButton(`alert-bridge dead-letters retry ${name} --sink ${sink}`),
    ]
  return state === 'delivered' ? [replayButton(name, sink), copyButton(replayCommand(name, sink))] : []
}

function heldCard(sink: string, name: string, canAct: boolean): Html {
  return html`<article class="card"><header class="row"><h3>${sink}</h3>${badge('warning', 'pause', 'held back')}</header>${buttonRow(canAct, [replayButton(name, sink), copyButton(replayCommand(name, sink))])}</article>`
}

/** Sinks that got it neither by another route nor since. */
function heldSinks({ deliveries, held }: AlertHistory): string[] {
  const sent = new Set(deliveries.map(({ sink }) => sink))
  return [...new Set(held.flatMap(({ sinks }) => sinks))].filter((sink) => !sent.has(sink))
}

function replayButton(name: string, sink: string): Html {
  return actionButton({
    ...{ label: 'Send again', path: '/api/v1/replay', body: { ids: [name], sink } },
    ask: `${name} is sent to ${sink} once more, with the same webhook-id.`,
  })
}

function replayCommand(name: string, sink: string): string {
  return `alert-bridge replay ${name} --sink ${sink}`
}

function silenceButton({ kind, symbol, ruleIds }: AlertHistory): Html {
  return actionButton({
    label: 'Silence what is like it',
    ask: 'Alerts that match all of these are held back from every sink for a while. They are recorded and can be sent later.',
    path: '/api/v1/silences',
    fields: [
      { name: 'match.symbol', label: 'Symbol', value: symbol ?? '' },
      { name: 'match.kind', label: 'Kind', value: kind },
      { name: 'match.ruleId', label: 'Rule', value: ruleIds[0] ?? '' },
      { name: 'for', label: 'For', value: '1h', options: silenceSpans },
      { name: 'comment', label: 'Why', value: '' },
    ],
    preview: '/api/v1/silences/preview',
    undo: { method: 'DELETE', path: '/api/v1/silences/:id' },
  })
}
