import type { SinkActivityView } from '../ports.ts'
import type { LastResult, SinkState, SinkView } from '../status-view.ts'
import { hourBars } from './bars.ts'
import { actionButton, buttonRow } from './buttons.ts'
import { foreign, type Html, type HtmlPart, html } from './html.ts'
import { badge, type IconName, section, type Tone } from './pieces.ts'
import { formatCount, formatSeconds, plural, type Times } from './times.ts'

/** The section of the sinks: for each, whether it takes alerts, how many wait, how many were given up on. */
export function sinksSection(
  sinks: readonly SinkView[],
  activity: readonly SinkActivityView[],
  times: Times,
  canAct: boolean,
): Html {
  const barsOf = (name: string) => activity.find(({ sink }) => sink === name)
  const heads = [
    'Sink',
    'State',
    'Waiting',
    'Sending',
    'To retry',
    'Dead',
    'Today',
    'Lag p50 · p95',
    'Last result',
  ]
  const table = html`<div class="panel"><table class="sinks">
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${sinks.map((sink) => row(sink, barsOf(sink.name), times, canAct))}</tbody></table></div>`
  return section('sinks', 'Sinks', null, table)
}

const states: Record<SinkState, readonly [Tone, IconName, string]> = {
  active: ['ok', 'check', 'taking'],
  paused: ['warning', 'pause', 'paused'],
  open: ['failed', 'cross', 'resting'],
  stuck: ['failed', 'cross', 'stuck'],
}

const results: Record<LastResult['kind'], readonly [Tone, string]> = {
  delivered: ['ok', 'delivered'],
  retry: ['warning', 'to be tried again'],
  dead: ['failed', 'given up'],
}

function row(sink: SinkView, activity: SinkActivityView | undefined, times: Times, canAct: boolean): Html {
  const { lag } = sink
  return html`<tr id="sink-${sink.name}">
<th scope="row">${sink.name}<small>${sink.type}</small>${activity ? hourBars(activity) : null}</th>
<td data-label="State">${sink.waiting === null ? badge('calm', 'clock', 'not known') : badge(...states[sink.state])}${sink.reason ? html`<small>${sink.reason}</small>` : null}${stateNote(sink, times)}</td>
${count(sink, 'Waiting', sink.waiting, 'waiting', undefined, queueNote(sink, times))}
${count(sink, 'Sending', sink.active, 'active')}
${count(sink, 'To retry', sink.delayed, 'delayed', 'warning')}
${count(sink, 'Dead', sink.dead, 'dead', 'failed')}
${count(sink, 'Today', sink.deliveredToday, 'delivered')}
<td class="number" data-label="Lag p50 · p95">${lag ? `${formatSeconds(lag.p50)} · ${formatSeconds(lag.p95)}` : '–'}</td>
<td data-label="Last result">${lastResult(sink.lastResult, times)}${buttonRow(canAct, buttonsOf(sink))}</td>
</tr>`
}

function stateNote({ failingSince, nextProbeAt, pausedUntil }: SinkView, times: Times): HtmlPart {
  if (pausedUntil !== null) return html`<small>ends ${times.distance(pausedUntil)}</small>`
  if (failingSince === null) return null
  const next = nextProbeAt === null ? null : html`, next probe ${times.distance(nextProbeAt)}`
  return html`<small>since ${times.distance(failingSince)}${next}</small>`
}

function buttonsOf({ name, state, dead }: SinkView): Html[] {
  const path = `/api/v1/sinks/${encodeURIComponent(name)}`
  const [pause, resume] = [`${path}/pause`, `${path}/resume`]
  const hold =
    state === 'paused'
      ? actionButton({
          ...{ label: 'Resume', path: resume, undo: { method: 'POST', path: pause } },
          ask: `What waits for ${name} is sent.`,
        })
      : actionButton({
          ...{ label: 'Pause', path: pause, undo: { method: 'POST', path: resume } },
          ask: `Alerts for ${name} wait in its queue, in all replicas, until the time is over or it is resumed.`,
          fields: [
            {
              name: 'for',
              label: 'For (empty: until resumed)',
              value: '',
              options: ['', '10m', '30m', '1h', '4h', '1d'],
            },
            { name: 'comment', label: 'Why', value: '' },
          ],
        })
  const probe =
    state === 'open'
      ? [
          actionButton({
            ...{ label: 'Probe now', path: `${path}/probe` },
            ask: `One alert is sent to ${name} now, without waiting for the next probe.`,
          }),
        ]
      : []
  if (!dead) return [hold, ...probe]
  const letters = plural(dead, 'dead letter')
  const body = { sink: name }
  return [
    hold,
    ...probe,
    actionButton({
      ...{ label: 'Retry dead', path: '/api/v1/dead-letters/retry', body },
      ask: `${letters} of ${name} go back into its queue, with fresh attempts.`,
    }),
    actionButton({
      ...{ label: 'Drop dead', path: '/api/v1/dead-letters/drop', body },
      ask: `${letters} of ${name} are deleted for ever.`,
    }),
  ]
}

/** A count that is not 0 links to the list of these deliveries. */
function count(
  sink: SinkView,
  label: string,
  value: number | null,
  state: string,
  tone?: Tone,
  note?: HtmlPart,
): Html {
  const query = new URLSearchParams({ sink: sink.name, state }).toString()
  const shown = value ? html`<a href="?${query}#deliveries">${formatCount(value)}</a>` : formatCount(value)
  return html`<td class="number ${value ? tone : 'none'}" data-label="${label}">${shown}${note ? html`<small>${note}</small>` : null}</td>`
}

/** Since when the first waits, and how long all of them will take. */
function queueNote({ oldestWaitingAt, drainSeconds }: SinkView, times: Times): HtmlPart {
  if (oldestWaitingAt === null) return null
  const takes = drainSeconds === null ? null : `, takes ${formatSeconds(drainSeconds)}`
  return html`since ${times.distance(oldestWaitingAt)}${takes}`
}

function lastResult(result: LastResult | null, times: Times): HtmlPart {
  if (!result) return 'nothing sent yet'
  const [tone, word] = results[result.kind]
  return html`<span class="${tone}">${word}</span> ${times.distance(result.at)}${result.text ? html`<small class="answer">${foreign(result.text)}</small>` : null}`
}
