import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type { SinkActivity } from '../../delivery/records/activity.ts'
import { given } from '../../lib/given.ts'
import { putsOff, refusesEverything } from '../verdict.ts'
import type { LastResult, SinkState, SinkView } from '../views/status-view.ts'
import { curve, hourBars } from './bars.ts'
import { actionButton, buttonRow } from './buttons.ts'
import { failure, foreign } from './foreign.ts'
import { badge, type IconName, section, type Tone } from './pieces.ts'
import type { Times } from './times.ts'
import { lagText, type PageWords } from './words/en.ts'

/** The section of the sinks: for each, whether it takes alerts, how many wait, how many were given up on. */
export function sinksSection(
  sinks: readonly SinkView[],
  activity: readonly SinkActivity[],
  times: Times,
  canAct: boolean,
): Html {
  const barsOf = (name: string) => activity.find(({ sink }) => sink === name)
  const heads = Object.values(times.words.sinkHeads)
  const table = html`<div class="panel"><table class="sinks">
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${sinks.map((sink) => row(sink, barsOf(sink.name), times, canAct))}</tbody></table></div>`
  return section('sinks', times.words.sinks, null, table)
}

const states: Record<SinkState, readonly [Tone, IconName]> = {
  active: ['ok', 'check'],
  paused: ['warning', 'pause'],
  open: ['failed', 'cross'],
  stuck: ['failed', 'cross'],
}

const results: Record<LastResult['kind'], Tone> = { delivered: 'ok', retry: 'warning', dead: 'failed' }

function row(sink: SinkView, activity: SinkActivity | undefined, times: Times, canAct: boolean): Html {
  const { lag } = sink
  const { words } = times
  const heads = words.sinkHeads
  return html`<tr id="sink-${sink.name}">
<th scope="row">${sink.name}<small>${sink.type}</small>${activity ? hourBars(activity, words) : null}</th>
<td class="state" data-label="${heads.state}">${stateBadge(sink, times)}${sink.reason ? html`<small>${sinkReason(sink, words)}</small>` : null}${stateNote(sink, times)}</td>
${count(sink, words, 'waiting', undefined, queueNote(sink, times), activity && queueCurve(activity, words))}
${count(sink, words, 'active')}
${count(sink, words, 'delayed', 'warning')}
${count(sink, words, 'dead', 'failed')}
${count(sink, words, 'today')}
<td class="number" data-label="${heads.lag}">${lag ? html`<span>${lagText(lag.p50, words)}</span>${words.dot}<span>${lagText(lag.p95, words)}</span>` : '–'}${activity ? sendCurve(activity, words) : null}</td>
<td class="wide" data-label="${heads.last}">${lastResult(sink.lastResult, times)}${buttonRow(canAct, buttonsOf(sink, words))}</td>
</tr>`
}

function stateBadge(sink: SinkView, { words, nowMs }: Times): Html {
  if (sink.waiting === null) return badge('calm', 'clock', words.unknownState)
  if (refusesEverything(sink)) return badge('failed', 'cross', words.refuses)
  if (putsOff(sink, nowMs)) return badge('warning', 'clock', words.putsOff)
  return badge(...states[sink.state], words.sinkStates[sink.state])
}

export function sinkReason(
  { state, reason }: Pick<SinkView, 'state' | 'reason'>,
  words: PageWords,
): HtmlPart {
  if (reason === null) return null
  return state === 'paused' ? foreign(reason) : failure(reason, words.reasons, words.fromBelow)
}

/** Since when it sends nothing, or until when. A sink that is paused may have failed before: that is not since when it is paused. */
export function stateNote(
  {
    state,
    failingSince,
    nextProbeAt,
    heldUntil,
    pausedUntil,
  }: Pick<SinkView, 'state' | 'failingSince' | 'nextProbeAt' | 'heldUntil' | 'pausedUntil'>,
  times: Times,
): HtmlPart {
  if (pausedUntil !== null) return html`<small>${times.words.ends(times.distance(pausedUntil))}</small>`
  if (heldUntil !== null) return html`<small>${times.words.askedForPause(times.distance(heldUntil))}</small>`
  if (failingSince === null || state === 'paused') return null
  const next = nextProbeAt === null ? null : times.words.nextProbe(times.distance(nextProbeAt))
  return html`<small>${times.words.since(times.distance(failingSince))}${next}</small>`
}

function buttonsOf({ name, state, dead, reason, pausedUntil }: SinkView, words: PageWords): Html[] {
  const path = `/api/v1/sinks/${encodeURIComponent(name)}`
  const [pause, resume] = [`${path}/pause`, `${path}/resume`]
  const hold =
    state === 'paused'
      ? actionButton({
          label: words.resume,
          path: resume,
          place: 'hold',
          ask: words.resumeAsk(name),
          undo: {
            method: 'POST',
            path: pause,
            ...given({ endsAt: pausedUntil ?? undefined }),
            body: { comment: reason ?? '', unlessPaused: true },
          },
        })
      : actionButton({
          label: words.pause,
          path: pause,
          place: 'hold',
          ask: words.pauseAsk(name),
          // The pause of another operator, which the reader does not see yet, would be lost, and not come back by what undoes this one.
          body: { unlessPaused: true },
          undo: { method: 'POST', path: resume, body: { id: ':id' } },
          fields: [
            {
              name: 'for',
              label: words.pauseFor,
              value: '',
              options: ['', '10m', '30m', '1h', '4h', '1d'],
            },
            { name: 'comment', label: words.fields.why, value: '' },
          ],
        })
  const probe =
    state === 'open'
      ? [
          actionButton({
            label: words.probe,
            path: `${path}/probe`,
            ask: words.probeAsk(name),
          }),
        ]
      : []
  if (!dead) return [hold, ...probe]
  const body = { sink: name }
  return [
    hold,
    ...probe,
    actionButton({
      label: words.retryDead,
      path: '/api/v1/dead-letters/retry',
      body,
      ask: words.retryAsk(dead, name),
    }),
    actionButton({
      label: words.dropDead,
      path: '/api/v1/dead-letters/drop',
      body,
      ask: words.dropAsk(dead, name),
    }),
  ]
}

/** A count that is not 0 links to the list of these deliveries. */
function count(
  sink: SinkView,
  words: PageWords,
  kind: 'waiting' | 'active' | 'delayed' | 'dead' | 'today',
  tone?: Tone,
  note?: HtmlPart,
  drawing?: HtmlPart,
): Html {
  const [value, state] = kind === 'today' ? [sink.deliveredToday, 'delivered'] : [sink[kind], kind]
  const query = new URLSearchParams({ sink: sink.name, state }).toString()
  const shown = value ? html`<a href="?${query}#deliveries">${words.count(value)}</a>` : words.count(value)
  return html`<td class="number ${value ? tone : 'none'}" data-label="${words.sinkHeads[kind]}">${shown}${note ? html`<small>${note}</small>` : null}${drawing}</td>`
}

/** Since when the first waits, and how long all of them will take, unless the pause that the sink asked for comes first. */
function queueNote({ oldestWaitingAt, drainSeconds, heldUntil }: SinkView, times: Times): HtmlPart {
  if (oldestWaitingAt === null) return null
  const { words } = times
  const takes =
    drainSeconds === null || heldUntil !== null ? null : words.takes(words.duration(drainSeconds * 1_000))
  return html`${words.since(times.distance(oldestWaitingAt))}${takes}`
}

function queueCurve({ quarters }: SinkActivity, words: PageWords): HtmlPart {
  const points = quarters.map((quarter) => quarter?.queued)
  return curve(points, (most) => words.queueCurve(words.count(most)))
}

/** How long the receiver takes, in the last quarter with a send and over the day. */
function sendCurve({ quarters }: SinkActivity, words: PageWords): HtmlPart {
  const points = quarters.map((quarter) => quarter?.sendMs)
  const last = points.findLast((point) => point !== undefined)
  if (last === undefined) return null
  const drawn = curve(points, (most) => words.sendCurve(words.duration(Math.round(most))))
  return html`<small>${words.sendTakes(words.duration(Math.round(last)))}</small>${drawn}`
}

function lastResult(result: LastResult | null, times: Times): HtmlPart {
  if (!result) return times.words.nothingSent
  return html`<span class="${results[result.kind]}">${times.words.results[result.kind]}</span> ${times.distance(result.at)}${result.text ? html`<small class="answer">${failure(result.text, result.kind === 'delivered' ? {} : times.words.reasons)}</small>` : null}`
}
