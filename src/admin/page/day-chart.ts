import { type Html, html } from '../../alert/text/html.ts'
import type { SourceDayView, SourceHour } from '../ports.ts'
import type { Times } from './times.ts'
import { type PageWords, roundedCount } from './words/en.ts'

/**
 * The budget day of a source by hours: units that were spent over the polls of the plan, and beneath the line the alerts that
 * were seen. Each half has its own scale.
 */
export function dayChart({ hours, startedAt, resetsAt, sharers }: SourceDayView, times: Times): Html | null {
  const [startMs, endMs] = [Date.parse(startedAt), Date.parse(resetsAt)]
  if (hours.length === 0 || !(endMs > startMs)) return null
  const unitsMost = Math.max(1, ...hours.map(({ units, planned }) => Math.max(units, planned)))
  const alertsMost = Math.max(1, ...hours.map(({ alerts }) => alerts))
  const percent = (atMs: number) =>
    (100 * Math.min(1, Math.max(0, (atMs - startMs) / (endMs - startMs)))).toFixed(2)
  const bars = hours.map((hour) => {
    const fromMs = Date.parse(hour.startedAt)
    const x = percent(fromMs)
    const width = (Number(percent(fromMs + hourMs)) - Number(x) - gapPercent).toFixed(2)
    const rect = (kind: string, y: number, height: number) =>
      height > 0 && html`<rect class="${kind}" x="${x}%" y="${y}" width="${width}%" height="${height}"/>`
    const [planned, spent] = [hour.planned, hour.units].map((count) =>
      barHeight(count, unitsMost, unitsHeight),
    )
    const seen = barHeight(hour.alerts, alertsMost, alertsHeight)
    return html`<g><title>${titleOf(hour, times)}</title>${rect('hit', 0, chartHeight)}${rect('planned', unitsHeight - (planned ?? 0), planned ?? 0)}${rect('spent', unitsHeight - (spent ?? 0), spent ?? 0)}${rect('seen', unitsHeight + 2, seen)}</g>`
  })
  const now = percent(times.nowMs)
  const labels = hours
    .filter((_hour, at) => at % labelEvery === 0)
    .map(
      ({ startedAt: at }) =>
        html`<text x="${percent(Date.parse(at))}%" y="${chartHeight + labelHeight - 3}">${times.clock(at).slice(0, 5)}</text>`,
    )
  return html`<figure class="day"><svg width="100%" height="${chartHeight + labelHeight}" role="img" aria-label="${summary(hours, times)}">
<rect class="base" y="${unitsHeight}" width="100%" height="1"/>${bars}<rect class="mark" x="${now}%" width="2" height="${chartHeight}" rx="1"/>${labels}</svg>
<figcaption class="note"><span class="parts">${legend('spent', times.words)}${legend('planned', times.words)}${legend('seen', times.words)}</span>${summary(hours, times)}${sharers > 1 ? ` ${times.words.sharedDay(sharers)}` : null}</figcaption></figure>`
}

/** A count above 0 is drawn high enough to be seen beside any other. */
function barHeight(count: number, most: number, height: number): number {
  return count <= 0 ? 0 : Math.max(1.5, Math.round((10 * height * count) / most) / 10)
}

function titleOf({ startedAt, planned, units, alerts }: SourceHour, times: Times): string {
  const from = times.clock(startedAt).slice(0, 5)
  const past = Date.parse(startedAt) <= times.nowMs
  return times.words.hour(from, roundedCount(planned), past ? { units, alerts } : undefined)
}

/** What the plan would have spent by now beside what was spent. */
function summary(hours: readonly SourceHour[], { nowMs, words }: Times): string {
  const share = ({ startedAt }: SourceHour) =>
    Math.min(1, Math.max(0, (nowMs - Date.parse(startedAt)) / hourMs))
  const sum = (of: (hour: SourceHour) => number) => hours.reduce((total, hour) => total + of(hour), 0)
  const planned = roundedCount(sum((hour) => hour.planned * share(hour)))
  const [spent, seen] = [sum(({ units }) => units), sum(({ alerts }) => alerts)]
  return words.day(spent, seen, planned)
}

function legend(kind: keyof PageWords['legend'], words: PageWords): Html {
  return html`<span><svg class="swatch" viewBox="0 0 8 8" aria-hidden="true"><rect class="${kind}" width="8" height="8" rx="2"/></svg>${words.legend[kind]}</span>`
}

const hourMs = 3_600_000
const unitsHeight = 46
const alertsHeight = 16
const chartHeight = unitsHeight + 2 + alertsHeight
/** Between the bars. */
const gapPercent = 0.6
const labelEvery = 6
const labelHeight = 15
