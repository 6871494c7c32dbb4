import { alertKey, noticeSource } from '../../alert/alert.ts'
import { datedAt } from '../../alert/fired-at.ts'
import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type {
  AlertStory,
  AttemptView,
  DeliveryStory,
  RowState,
  SinkHold,
  WithheldView,
} from '../views/delivery-view.ts'
import { auditList } from './audit.ts'
import { actionButton, buttonRow, copyButton } from './buttons.ts'
import { badgeOf } from './deliveries.ts'
import { failure, foreign, foreignLink } from './foreign.ts'
import { badge, section } from './pieces.ts'
import { silenceButton } from './silences.ts'
import { sinkReason, stateNote } from './sinks.ts'
import type { Times } from './times.ts'
import type { PageWords } from './words/en.ts'

/**
 * The whole story of one alert: fired, seen, held back or sent, every attempt with its answer, and what operators did. `canActOn`: the
 * sinks with buttons; the API refuses orders for one that the config does not have.
 */
export function storyHtml(
  alert: AlertStory,
  times: Times,
  canAct: boolean,
  canActOn: (sink: string) => boolean = () => canAct,
): Html {
  const name = alertKey(alert)
  const { deliveries, held, actions } = alert
  const { words } = times
  return html`${backLink(words)}
<header class="story" id="top"><h1>${foreignLink(alert.url, alert.headline)}</h1>
<p class="meta">${alert.symbol ? html`<b>${foreign(alert.symbol)}</b>` : null}<span>${foreign(alert.kind)}</span><span>${name}</span>${alert.ruleIds.length > 0 ? html`<span>${words.rules(alert.ruleIds.length, foreign(alert.ruleIds.join(', ')))}</span>` : null}</p>
${alert.why ? html`<p class="reason">${foreign(alert.why)}</p>` : null}
<ol class="steps">${fired(alert, times)}${seen(alert, times)}${held.map((each) => heldStep(each, times))}${alert.dropped.map((each) => droppedStep(each, times))}${nobody(alert, words)}</ol>
${buttonRow(canAct, [silenceLike(alert, words), copyButton(words, `alert-bridge deliveries ${name}`)])}</header>
${section(
  'sinks',
  words.deliveries,
  null,
  html`<div class="cards">${deliveries.map((each) => delivery(each, alert, times, canActOn(each.sink)))}${heldSinks(alert).map((sink) => heldCard(sink, name, words, canActOn(sink)))}</div>`,
)}
${actions.length > 0 ? section('actions', words.actions, null, auditList(actions, times)) : null}`
}

export function backLink(words: PageWords): Html {
  return html`<nav class="back"><a href="/#deliveries">${words.back}</a></nav>`
}

function fired({ firedAt }: AlertStory, times: Times): Html {
  return html`<li><b>${times.words.fired}</b> ${datedAt(firedAt) === null ? foreign(firedAt) : times.moment(firedAt)}</li>`
}

/** A notice was found by no poll. */
function seen({ source, firedAt, seenAt, page }: AlertStory, times: Times): HtmlPart {
  if (seenAt === null || source === noticeSource) return null
  const firedMs = datedAt(firedAt)
  const afterMs = firedMs === null ? -1 : Date.parse(seenAt) - firedMs
  const after = afterMs < 0 ? null : times.words.later(times.words.duration(afterMs))
  return html`<li><b>${times.words.seen}</b> ${times.words.byPoll(times.moment(seenAt), page)}${after}</li>`
}

function heldStep(held: WithheldView, times: Times): Html {
  const { words } = times
  const from = held.sinks.length > 0 ? words.heldFrom(held.sinks.join(words.list)) : null
  return html`<li class="warning"><b>${words.heldBack}</b> ${from}${words.held(held, times.moment)}</li>`
}

function droppedStep({ sink, target, at }: AlertStory['dropped'][number], times: Times): Html {
  return html`<li class="warning">${times.words.droppedFrom(receiver(sink, target), times.moment(at))}</li>`
}

function receiver(sink: string, target: string | undefined): Html {
  return html`<bdi>${sink}${target === undefined ? null : html` → ${foreign(target)}`}</bdi>`
}

function nobody({ deliveries, held }: AlertStory, words: PageWords): HtmlPart {
  return deliveries.length === 0 && held.length === 0 ? html`<li class="warning">${words.noRoute}</li>` : null
}

function delivery(part: DeliveryStory, alert: AlertStory, times: Times, canAct: boolean): Html {
  const { sink, target, routes, state, orphaned, heldUpBy, attempts, nextAttemptAt, requestedAt } = part
  const { words } = times
  const [tone, icon, word] = badgeOf(state, attempts.at(-1)?.outcome === 'retry', words)
  const next = nextAttemptAt
    ? html`<p class="reason">${words.nextTry(times.distance(nextAttemptAt))}</p>`
    : null
  return html`<article class="card" data-key="${sink} ${target ?? ''}"><header class="row"><h3>${receiver(sink, target)}</h3>${badge(tone, icon, word)}</header>
${routes === null ? null : html`<p class="reason">${words.byRoutes(routes.length, foreign(routes.join(', ')))}</p>`}${orphaned ? html`<p class="reason">${words.sinkIsGone}</p>` : null}${heldUpBy ? hold(heldUpBy, times) : null}${next}${attempts.length === 0 ? html`<p class="reason">${words.nothingWasSent}</p>` : html`<ol class="attempts">${attempts.map((each, at) => [roundMark(each, attempts[at - 1], requestedAt, times), attempt(each, times)])}</ol>`}
${buttonRow(canAct, buttonsOf(part, alert, words))}</article>`
}

function hold(sink: SinkHold, times: Times): Html {
  const { words } = times
  const note = stateNote(sink, times)
  if (sink.state === 'active') return html`<p class="reason">${note}</p>`
  return html`<p class="reason">${words.sinkIs(words.sinkStates[sink.state])}${sink.reason ? html`: ${sinkReason(sink, words)}` : null}${note}</p>`
}

/** Before the first attempt after an operator asked for the alert to be sent again. */
function roundMark(
  { round }: AttemptView,
  before: AttemptView | undefined,
  requestedAt: string | null,
  times: Times,
): HtmlPart {
  if (round === 1 || before?.round === round) return null
  const at = requestedAt === null ? null : times.words.lastTime(times.distance(requestedAt))
  return html`<li class="round">${times.words.sentAgain}${at}</li>`
}

function attempt(
  { number, at, durationSeconds, outcome, reason, status, text, skipped = [] }: AttemptView,
  times: Times,
): Html {
  const tone = outcome === 'delivered' ? 'ok' : outcome === 'dead' ? 'failed' : 'warning'
  const { words } = times
  const without = skipped.map(({ what, why }, at) => [
    at === 0 ? null : words.list,
    foreign(`${what} (${why})`),
  ])
  return html`<li><span class="number">${words.count(number)}.</span> <span class="${tone}">${words.results[outcome]}</span> ${status === null ? null : html`<b>${status}</b> `}${reason ? html`${failure(reason, words.reasons)} ` : null}<small>${times.moment(at)}${words.took(words.duration(durationSeconds * 1_000))}</small>${text ? html`<small class="answer">${foreign(text)}</small>` : null}${without.length === 0 ? null : html`<small class="answer">${words.without(without)}</small>`}</li>`
}

function buttonsOf({ sink, state }: DeliveryStory, alert: AlertStory, words: PageWords): Html[] {
  const name = alertKey(alert)
  const body = { ids: [name], sink }
  // An order names the sink: it is for all of its recipients whose delivery has ended so.
  const whereOf = (...ended: RowState[]) => {
    const meant = alert.deliveries.filter((each) => each.sink === sink && ended.includes(each.state))
    return meant.length > 1 ? words.recipients(sink, meant.length) : sink
  }
  if (state === 'dead')
    return [
      actionButton({
        label: words.retry,
        path: '/api/v1/dead-letters/retry',
        body,
        ask: words.retryOneAsk(name, whereOf('dead')),
      }),
      actionButton({
        label: words.drop,
        path: '/api/v1/dead-letters/drop',
        body,
        ask: words.dropOneAsk(name, whereOf('dead')),
      }),
      copyButton(words, `alert-bridge dead-letters retry ${name} --sink ${sink}`),
    ]
  return state === 'delivered'
    ? [
        replayButton(name, sink, words, whereOf('delivered', 'dead')),
        copyButton(words, replayCommand(name, sink)),
      ]
    : []
}

function heldCard(sink: string, name: string, words: PageWords, canAct: boolean): Html {
  return html`<article class="card" data-key="${sink} "><header class="row"><h3>${sink}</h3>${badge('warning', 'pause', words.rowStates.held)}</header>${buttonRow(canAct, [replayButton(name, sink, words), copyButton(words, replayCommand(name, sink))])}</article>`
}

/** Sinks that got it neither by another route nor since. */
function heldSinks({ deliveries, held }: AlertStory): string[] {
  const sent = new Set(deliveries.map(({ sink }) => sink))
  return [...new Set(held.flatMap(({ sinks }) => sinks))].filter((sink) => !sent.has(sink))
}

function replayButton(name: string, sink: string, words: PageWords, where = sink): Html {
  return actionButton({
    label: words.again,
    path: '/api/v1/replay',
    body: { ids: [name], sink },
    ask: words.againAsk(name, where),
  })
}

function replayCommand(name: string, sink: string): string {
  return `alert-bridge replay ${name} --sink ${sink}`
}

/** A notice is held back by no silence. */
function silenceLike({ source, kind, symbol, ruleIds }: AlertStory, words: PageWords): HtmlPart {
  if (source === noticeSource) return null
  return silenceButton(words.silence, { symbol: symbol ?? '', kind, rule: ruleIds[0] ?? '' }, words)
}
