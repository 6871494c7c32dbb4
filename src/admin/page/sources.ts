import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type { AnnouncedView } from '../../schedule/schedule.ts'
import type { SourceDayView } from '../ports.ts'
import type {
  BudgetStatus,
  PlanStatus,
  RulesStatus,
  SourceState,
  SourceView,
  StatusView,
} from '../views/status-view.ts'
import { actionButton, buttonRow } from './buttons.ts'
import { dayChart } from './day-chart.ts'
import { foreign } from './foreign.ts'
import { badge, fact, type IconName, section, type Tone } from './pieces.ts'
import type { Times } from './times.ts'
import { lagText, type PageWords } from './words/en.ts'

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
  const { words } = times
  const aside = [
    unrouted ? words.unrouted(unrouted) : null,
    quarantined ? words.quarantined(quarantined) : null,
    quarantineFellOut ? words.fellOut(quarantineFellOut) : null,
  ].filter((text) => text !== null)
  const cards = sources.map((source) => {
    const day = days.find(({ source: name }) => name === source.name)
    return card(source, day, times, canAct)
  })
  return section('sources', words.sources, aside.join(words.dot), html`<div class="cards">${cards}</div>`)
}

const states: Record<SourceState, readonly [Tone, IconName]> = {
  starting: ['calm', 'clock'],
  running: ['ok', 'check'],
  catching_up: ['warning', 'arrow'],
  retrying: ['warning', 'alert'],
  failing: ['failed', 'cross'],
  budget_spent: ['warning', 'pause'],
  queues_full: ['warning', 'pause'],
  standby: ['calm', 'pause'],
  stopped: ['failed', 'cross'],
}

function card(source: SourceView, day: SourceDayView | undefined, times: Times, canAct: boolean): Html {
  const { lag, nextReason } = source
  const { words } = times
  return html`<article class="card" id="source-${source.name}">
<header class="row"><h3>${source.name}</h3>${badge(...states[source.state], words.sourceStates[source.state])}</header>
${source.reason ? html`<p class="reason">${words.fromBelow(times.sentence(source.reason))}</p>` : null}
${source.notes.map((note) => html`<p class="reason">${foreign(note, times.sentence(note))}</p>`)}
${source.budget ? budgetBar(source.budget, times) : html`<p class="reason">${words.noBudget}</p>`}
<dl class="facts">
${fact(words.lastPoll, instant(source.lastPollAt, times))}
${fact(words.nextPoll, instant(source.nextPollAt, times), nextReason ? words.whyNext[nextReason] : null)}
${fact(words.lagSeen, lag ? lagText(lag.p50, words) : '–', lag ? words.p95(lagText(lag.p95, words)) : null)}
${fact(words.feedComplete, instant(source.lastCompleteWalkAt, times), source.behind ? words.behind : null)}
</dl>
${day ? dayChart(day, times) : null}
${source.plan ? planNote(source.plan, times) : null}
${source.polledBy === null ? null : html`<p class="plan">${words.polledBy(inPageTime(source.polledBy, times))}</p>`}
${source.rules && source.rules.silentCount > 0 ? silentRules(source.rules, times) : null}
${buttonRow(canAct && nextReason !== 'fixed', [hotButton(source, words)])}
</article>`
}

/** The name of a process says since when it runs. */
function inPageTime(name: string, times: Times): HtmlPart {
  const [, machine, id, since] =
    /^(.*), process (\d+), running since (\d{4}-\d\d-\d\dT[\d:.]+Z)$/.exec(name) ?? []
  if (!machine || !id || !since) return times.words.fromBelow(name)
  return times.words.process(machine, id, `${times.date(since)} ${times.clock(since)}`)
}

/** Taken back is only what began it: of one that lasts already, another end is asked for. */
function hotButton({ name, plan }: SourceView, words: PageWords): Html {
  const path = `/api/v1/sources/${encodeURIComponent(name)}/hot`
  return actionButton({
    label: words.hot,
    ask: words.hotAsk(name),
    path,
    ...(plan?.hotUntil ? {} : { undo: { method: 'POST', path: `${path}/end`, body: { until: ':until' } } }),
    fields: [{ name: 'for', label: words.fields.for, value: '30m', options: ['10m', '30m', '1h', '3h'] }],
  })
}

function planNote({ learnedFrom, firing, announced, hotUntil }: PlanStatus, times: Times): Html {
  const { words } = times
  const hot = hotUntil === null ? null : words.hotUntil(times.distance(hotUntil))
  return html`<p class="plan">${words.plan(learnedFrom, firing)}${announced && announcedNote(announced, words)}${hot}</p>`
}

/** Each is named, up to a few. */
function silentRules({ readAt, count, silentCount, silent }: RulesStatus, times: Times): Html {
  const shown = silent.slice(0, rulesMax)
  const more =
    silentCount > shown.length ? html`<li>${times.words.andMore(silentCount - shown.length)}</li>` : null
  return html`<div class="plan"><p>${times.words.silentRules(silentCount, count, times.distance(readAt))}</p>
<ul>${shown.map((rule) => silentRule(rule, times))}${more}</ul></div>`
}

/** The text begins in English, whatever follows. */
function silentRule({ id, name, text }: RulesStatus['silent'][number], times: Times): Html {
  const label = name === '' ? id : html`${foreign(name)} (${id})`
  return html`<li>${label}: <bdi dir="ltr">${times.sentence(text)}</bdi></li>`
}

/** The rules are named only where they say when polls come. */
function announcedNote({ follows, ruleCount, rules }: AnnouncedView, words: PageWords): HtmlPart {
  if (!follows) return words.notFollowed(ruleCount)
  const shown = rules.slice(0, rulesMax)
  const names = shown.map(
    ({ id, name }, at) => html`${at > 0 ? words.list : null}${foreign(name === '' ? id : name)}`,
  )
  const more = ruleCount > shown.length ? ` ${words.andMore(ruleCount - shown.length)}` : null
  return words.followed(ruleCount, [...names, more])
}

/** Rules that the page names. */
const rulesMax = 5

function instant(iso: string | null, times: Times) {
  return iso === null ? '–' : times.distance(iso)
}

/** A bar of the units spent, with a mark for the part of the day that is over. A bar beyond the mark spends early. */
function budgetBar(budget: BudgetStatus, times: Times): Html {
  const { unitsUsed, unitsPerDay, spentFor, startedAt, resetsAt, note } = budget
  const { words } = times
  const used = share(unitsUsed, unitsPerDay)
  const startMs = Date.parse(startedAt)
  const elapsed = share(times.nowMs - startMs, Date.parse(resetsAt) - startMs)
  const tone: Tone = used >= 100 ? 'failed' : used >= 90 && used > elapsed ? 'warning' : 'ok'
  return html`<div class="budget ${tone}">
<p class="row"><span>${words.unitsUsed(unitsUsed, unitsPerDay)}</span><span>${words.resets(times.distance(resetsAt))}</span></p>
<svg class="bar" width="100%" height="14" role="img" aria-label="${words.budgetBar(words.percent(used), words.percent(elapsed))}">
<rect class="track" y="3" width="100%" height="8" rx="4"/><rect class="fill" y="3" width="${used}%" height="8" rx="4"/><rect class="mark" x="${elapsed}%" width="2" height="14" rx="1"/></svg>
<p class="row note"><span>${words.used(words.percent(used))}</span><span>${words.dayOver(words.percent(elapsed))}</span></p>
${spentFor.length === 0 ? null : spentBar(spentFor, words)}
${note === null ? null : html`<p class="note">${words.fromBelow(times.sentence(note))}</p>`}
</div>`
}

/** What the units of the day were spent for: a slim bar with a part for each, and the parts in words. */
function spentBar(spentFor: BudgetStatus['spentFor'], words: PageWords): Html {
  const total = spentFor.reduce((sum, { units }) => sum + units, 0)
  const texts = spentFor.map(({ purpose, units }) => `${words.purposes[purpose]} ${words.count(units)}`)
  let before = 0
  const parts = spentFor.map(({ purpose, units }) => {
    const x = (before / total) * 100
    before += units
    return html`<rect class="${purpose}" x="${x.toFixed(2)}%" width="${((units / total) * 100).toFixed(2)}%" height="4"/>`
  })
  const list = spentFor.map(
    ({ purpose }, at) =>
      html`<span><svg class="swatch" viewBox="0 0 8 8" aria-hidden="true"><rect class="${purpose}" width="8" height="8" rx="2"/></svg>${texts[at]}</span>`,
  )
  return html`<svg class="bar spent" width="100%" height="4" role="img" aria-label="${words.spentFor(texts.join(words.list))}">${parts}</svg>
<p class="note parts">${list}</p>`
}

/** Whole per cent, 0 to 100. */
function share(part: number, whole: number): number {
  if (!(whole > 0)) return 0
  return Math.round(Math.min(1, Math.max(0, part / whole)) * 100)
}
