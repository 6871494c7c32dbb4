import type { AnnouncedView, DecisionReason } from '../../schedule/schedule.ts'
import type { SourceDayView } from '../ports.ts'
import { purposeWords } from '../purpose-words.ts'
import type {
  BudgetStatus,
  PlanStatus,
  RulesStatus,
  SourceState,
  SourceView,
  StatusView,
} from '../status-view.ts'
import { actionButton, buttonRow } from './buttons.ts'
import { dayChart } from './day-chart.ts'
import { foreign, type Html, html } from './html.ts'
import { badge, fact, type IconName, section, type Tone } from './pieces.ts'
import { formatCount, formatSeconds, plural, type Times } from './times.ts'

/** The section of the sources: for each, whether it is polled, when and why next, and how much of the budget is left. */
export function sourcesSection(
  canAct: boolean,
  days: readonly SourceDayView[],
  {
    sources,
    unrouted,
    quarantined,
    quarantineFellOut,
  }: Pick<StatusView, 'sources' | 'unrouted' | 'quarantined' | 'quarantineFellOut'>,
  times: Times,
): Html {
  const aside = [
    unrouted ? `${plural(unrouted, 'alert')} had no route` : null,
    quarantined
      ? `${plural(quarantined, 'row')} could not be read and ${quarantined === 1 ? 'is' : 'are'} set aside (/api/v1/quarantine)`
      : null,
    quarantineFellOut
      ? `of ${plural(quarantineFellOut, 'row')} the copy fell out, since the quarantine was full`
      : null,
  ].filter((text) => text !== null)
  const cards = sources.map((source) => {
    const day = days.find(({ source: name }) => name === source.name)
    return card(source, day, times, canAct)
  })
  return section('sources', 'Sources', aside.join(' · '), html`<div class="cards">${cards}</div>`)
}

const states: Record<SourceState, readonly [Tone, IconName, string]> = {
  starting: ['calm', 'clock', 'starting'],
  running: ['ok', 'check', 'polling'],
  catching_up: ['warning', 'arrow', 'catching up'],
  retrying: ['warning', 'alert', 'trying again'],
  failing: ['failed', 'cross', 'failing'],
  budget_spent: ['warning', 'pause', 'budget spent'],
  queues_full: ['warning', 'pause', 'queues full'],
  standby: ['calm', 'pause', 'another replica polls'],
  stopped: ['failed', 'cross', 'stopped'],
}

/** Why the next poll is planned for that time; shown after "in 8s:". */
const whyNext: Record<DecisionReason, string> = {
  first: 'the first poll',
  fixed: 'a fixed pace is set',
  even: 'units spread evenly',
  expected: 'alerts are expected about now',
  burst: 'alerts just came, more are likely',
  floor: 'quiet hours, nobody waits for ever',
  ceiling: 'as fast as allowed',
  announced: 'the API announces an evaluation of rules',
  mark: 'alerts fire on the mark',
  hot: 'an operator asked for it',
  catch_up: 'more pages are waiting',
  retry: 'the last call failed',
  budget_spent: 'nothing left until the reset',
}

function card(source: SourceView, day: SourceDayView | undefined, times: Times, canAct: boolean): Html {
  const { lag, nextReason } = source
  return html`<article class="card" id="source-${source.name}">
<header class="row"><h3>${source.name}</h3>${badge(...states[source.state])}</header>
${source.reason ? html`<p class="reason">${source.reason}</p>` : null}
${source.notes.map((note) => html`<p class="reason">${foreign(note)}</p>`)}
${source.budget ? budgetBar(source.budget, times) : html`<p class="reason">The budget is not known yet.</p>`}
<dl class="facts">
${fact('Last poll', instant(source.lastPollAt, times))}
${fact('Next poll', instant(source.nextPollAt, times), nextReason ? whyNext[nextReason] : null)}
${fact('Fired → seen', lag ? formatSeconds(lag.p50) : '–', lag ? `p95 ${formatSeconds(lag.p95)}` : null)}
${fact('Feed complete', instant(source.lastCompleteWalkAt, times), source.behind ? 'older pages still to read' : null)}
</dl>
${day ? dayChart(day, times) : null}
${source.plan ? planNote(source.plan, times) : null}
${source.polledBy === null ? null : html`<p class="plan">Polled by ${inPageTime(source.polledBy, times)}.</p>`}
${source.rules && source.rules.silentCount > 0 ? silentRules(source.rules, times) : null}
${buttonRow(canAct && nextReason !== 'fixed', [hotButton(source.name)])}
</article>`
}

/** The name of a process says since when it runs. */
function inPageTime(process: string, times: Times): string {
  return process.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, (iso) => `${times.date(iso)} ${times.clock(iso)}`)
}

function hotButton(name: string): Html {
  return actionButton({
    label: 'Poll more often',
    ask: `Source ${name} is polled up to four times as often, within its budget.`,
    path: `/api/v1/sources/${encodeURIComponent(name)}/hot`,
    fields: [{ name: 'for', label: 'For', value: '30m', options: ['10m', '30m', '1h', '3h'] }],
  })
}

function planNote({ learnedFrom, firing, announced, hotUntil }: PlanStatus, times: Times): Html {
  const from = learnedFrom > 0 ? `learned from ${plural(learnedFrom, 'alert')}` : 'as configured so far'
  const hot =
    hotUntil === null ? null : html` Polled more often on request, which ends ${times.distance(hotUntil)}.`
  return html`<p class="plan">Plan ${from}; alerts fire ${firing}.${announced && announcedNote(announced)}${hot}</p>`
}

/** Each is named, up to a few. */
function silentRules({ readAt, count, silentCount, silent }: RulesStatus, times: Times): Html {
  const shown = silent.slice(0, rulesMax)
  const more = silentCount > shown.length ? html`<li>and ${silentCount - shown.length} more</li>` : null
  return html`<div class="plan"><p>${silentCount} of ${plural(count, 'rule')} may not fire, as read ${times.distance(readAt)}:</p>
<ul>${shown.map(silentRule)}${more}</ul></div>`
}

/** The text begins in English, whatever follows. */
function silentRule({ id, name, text }: RulesStatus['silent'][number]): Html {
  const label = name === '' ? id : html`${foreign(name)} (${id})`
  return html`<li>${label}: <bdi dir="ltr">${text}</bdi></li>`
}

/** The rules are named only where they say when polls come. */
function announcedNote({ follows, ruleCount, rules }: AnnouncedView): Html {
  if (!follows)
    return html` The API announces evaluations of ${plural(ruleCount, 'rule')}, which polls do not follow.`
  const shown = rules.slice(0, rulesMax)
  const names = shown.map(
    ({ id, name }, at) => html`${at > 0 ? ', ' : null}${foreign(name === '' ? id : name)}`,
  )
  const more = ruleCount > shown.length ? ` and ${ruleCount - shown.length} more` : null
  return html` Polls follow the evaluations that the API announces of ${plural(ruleCount, 'rule')} (${names}${more}).`
}

/** Rules that the page names. */
const rulesMax = 5

function instant(iso: string | null, times: Times) {
  return iso === null ? '–' : times.distance(iso)
}

/** A bar of the units spent, with a mark for the part of the day that is over. A bar beyond the mark spends early. */
function budgetBar(budget: BudgetStatus, times: Times): Html {
  const { unitsUsed, unitsPerDay, spentFor, startedAt, resetsAt, note } = budget
  const used = share(unitsUsed, unitsPerDay)
  const startMs = Date.parse(startedAt)
  const elapsed = share(times.nowMs - startMs, Date.parse(resetsAt) - startMs)
  const tone: Tone = used >= 100 ? 'failed' : used >= 90 && used > elapsed ? 'warning' : 'ok'
  return html`<div class="budget ${tone}">
<p class="row"><span><b>${formatCount(unitsUsed)}</b> of ${formatCount(unitsPerDay)} units</span><span>resets ${times.distance(resetsAt)}</span></p>
<svg class="bar" width="100%" height="14" role="img" aria-label="${used}% of the units used, ${elapsed}% of the day over">
<rect class="track" y="3" width="100%" height="8" rx="4"/><rect class="fill" y="3" width="${used}%" height="8" rx="4"/><rect class="mark" x="${elapsed}%" width="2" height="14" rx="1"/></svg>
<p class="row note"><span>${used}% used</span><span>${elapsed}% of the day over</span></p>
${spentFor.length === 0 ? null : spentBar(spentFor)}
${note === null ? null : html`<p class="note">${note}</p>`}
</div>`
}

/** What the units of the day were spent for: a slim bar with a part for each, and the parts in words. */
function spentBar(spentFor: BudgetStatus['spentFor']): Html {
  const total = spentFor.reduce((sum, { units }) => sum + units, 0)
  const words = spentFor.map(({ purpose, units }) => `${purposeWords[purpose]} ${formatCount(units)}`)
  let before = 0
  const parts = spentFor.map(({ purpose, units }) => {
    const x = (before / total) * 100
    before += units
    return html`<rect class="${purpose}" x="${x.toFixed(2)}%" width="${((units / total) * 100).toFixed(2)}%" height="4"/>`
  })
  const list = spentFor.map(
    ({ purpose }, at) =>
      html`<span><svg class="swatch" viewBox="0 0 8 8" aria-hidden="true"><rect class="${purpose}" width="8" height="8" rx="2"/></svg>${words[at]}</span>`,
  )
  return html`<svg class="bar spent" width="100%" height="4" role="img" aria-label="Units spent for ${words.join(', ')}">${parts}</svg>
<p class="note parts">${list}</p>`
}

/** Whole per cent, 0 to 100. */
function share(part: number, whole: number): number {
  if (!(whole > 0)) return 0
  return Math.round(Math.min(1, Math.max(0, part / whole)) * 100)
}
