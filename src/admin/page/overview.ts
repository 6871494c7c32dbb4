import { formatDuration } from '../../lib/duration.ts'
import type { LagView, Level, StatusView, Verdict } from '../status-view.ts'
import { type Html, type HtmlPart, html } from './html.ts'
import { fact, type IconName, icon } from './pieces.ts'
import { formatCount, formatSeconds, plural, type Times } from './times.ts'

/** The top of the page: the verdict, its findings, and a few numbers. */
export function overview(status: StatusView, verdict: Verdict, times: Times): Html {
  return html`${masthead(status, times)}${verdictPanel(verdict, status)}${numbers(status)}`
}

/** The page when what it shows could not be read, or is not there. */
export function unknownOverview(level: 'warning' | 'failed', headline: string, reason: string): Html {
  const verdict: VerdictSummary = {
    level,
    headline,
    findings: [{ level, text: reason, href: '/#deliveries' }],
  }
  return html`<header class="masthead" id="top"><h1>alert-bridge</h1></header>${verdictPanel(verdict, undefined)}`
}

const glyphs: Record<Level, IconName> = { ok: 'check', warning: 'alert', failed: 'cross' }

function masthead(status: StatusView, times: Times): Html {
  const now = new Date(times.nowMs).toISOString()
  return html`<header class="masthead" id="top">
<h1>alert-bridge</h1>
<p>${status.version}<span>up ${formatDuration(status.uptimeSeconds * 1_000)}</span>${status.role === 'all' ? null : html`<span>${status.role} only</span>`}</p>
<p class="now"><time datetime="${now}">${times.date(now)} <b>${times.clock(now)}</b></time><span>${times.timeZone}</span></p>
</header>`
}

/** Without `ready`: the headline says that. */
type VerdictSummary = Pick<Verdict, 'level' | 'headline'> & {
  readonly findings: readonly Omit<Verdict['findings'][number], 'blocks'>[]
}

function verdictPanel({ level, headline, findings }: VerdictSummary, status: StatusView | undefined): Html {
  const list = findings.map(
    (finding) => html`<li class="${finding.level}"><a href="${finding.href}">${finding.text}</a></li>`,
  )
  return html`<div class="verdict ${level}">
<span class="seal">${icon(glyphs[level])}</span>
<div><p class="headline">${headline}</p>${list.length > 0 ? html`<ul>${list}</ul>` : html`<p>${allWell(status)}</p>`}</div>
</div>`
}

function allWell(status: StatusView | undefined): HtmlPart {
  if (!status) return null
  return `Redis answers, ${plural(status.sources.length, 'source')} polled, ${plural(status.sinks.length, 'sink')} taking deliveries.`
}

function numbers({ sources, sinks }: StatusView): Html {
  const sum = (values: readonly (number | null)[]) =>
    values.includes(null) ? null : values.reduce<number>((total, value) => total + (value ?? 0), 0)
  const waiting = sum(sinks.flatMap(({ waiting, active, delayed }) => [waiting, active, delayed]))
  return html`<dl class="numbers">
${fact('Fired → seen', ...lagOf(sources.map(({ lag }) => lag)))}
${fact('Fired → acknowledged', ...lagOf(sinks.map(({ lag }) => lag)))}
${fact('In the queues', formatCount(waiting), 'waiting, sending, to retry')}
${fact('Delivered today', formatCount(sum(sinks.map(({ deliveredToday }) => deliveredToday))), sinks.length === 1 ? 'by one sink' : `by ${sinks.length} sinks`)}
${fact('Dead letters', formatCount(sum(sinks.map(({ dead }) => dead))), 'until retried or dropped')}
</dl>`
}

/** Quantiles of several sources or sinks cannot be combined, so those of the slowest one are shown. */
function lagOf(lags: readonly (LagView | null)[]): [string, string] {
  const known = lags.filter((lag) => lag !== null)
  const worst = known.reduce<LagView | undefined>(
    (most, lag) => (most && most.p95 >= lag.p95 ? most : lag),
    undefined,
  )
  if (!worst) return ['–', 'nothing measured yet']
  return [
    formatSeconds(worst.p50),
    `p95 ${formatSeconds(worst.p95)}${known.length > 1 ? ', the slowest' : ''}`,
  ]
}
