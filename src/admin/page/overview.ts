import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type { LagView, Level, StatusView, Verdict } from '../views/status-view.ts'
import { fact, type IconName, icon } from './pieces.ts'
import type { Times } from './times.ts'
import { lagText, type PageWords } from './words/en.ts'

/** The top of the page: the verdict, its findings, and a few numbers. */
export function overview(status: StatusView, verdict: Verdict, times: Times): Html {
  const { words } = times
  const findings = verdict.findings.map((finding) => ({
    level: finding.level,
    href: finding.href,
    text: words.finding(finding, times),
  }))
  const summary = { level: verdict.level, headline: words.headline(verdict), findings }
  return html`${masthead(status, times)}${verdictPanel(summary, words, status)}${numbers(status, words)}`
}

/** The page when what it shows could not be read, or is not there. */
export function unknownOverview(
  words: PageWords,
  level: 'warning' | 'failed',
  headline: string,
  reason: string,
): Html {
  const verdict: VerdictSummary = {
    level,
    headline,
    findings: [{ level, text: reason, href: '/#deliveries' }],
  }
  return html`<header class="masthead" id="top"><h1>alert-bridge</h1></header>${verdictPanel(verdict, words)}`
}

const glyphs: Record<Level, IconName> = { ok: 'check', warning: 'alert', failed: 'cross' }

function masthead(status: StatusView, times: Times): Html {
  const now = new Date(times.nowMs).toISOString()
  return html`<header class="masthead" id="top">
<h1>alert-bridge</h1>
<p>${status.version}<span>${times.words.up(times.words.duration(status.uptimeSeconds * 1_000))}</span>${status.role === 'all' ? null : html`<span>${times.words.only(status.role)}</span>`}</p>
<p class="now"><time datetime="${now}">${times.date(now)} <b>${times.clock(now)}</b></time><span>${times.timeZone}</span></p>
</header>`
}

/** In the language of the page. */
interface VerdictSummary {
  readonly level: Level
  readonly headline: string
  readonly findings: readonly { readonly level: Level; readonly href: string; readonly text: HtmlPart }[]
}

function verdictPanel(
  { level, headline, findings }: VerdictSummary,
  words: PageWords,
  status?: StatusView,
): Html {
  const list = findings.map(
    (finding) => html`<li class="${finding.level}"><a href="${finding.href}">${finding.text}</a></li>`,
  )
  return html`<div class="verdict ${level}">
<span class="seal">${icon(glyphs[level])}</span>
<div><p class="headline">${headline}</p>${list.length > 0 ? html`<ul>${list}</ul>` : html`<p>${status && words.allWell(status.sources.length, status.sinks.length)}</p>`}</div>
</div>`
}

function numbers({ sources, sinks }: StatusView, words: PageWords): Html {
  const sum = (values: readonly (number | null)[]) =>
    values.includes(null) ? null : values.reduce<number>((total, value) => total + (value ?? 0), 0)
  const waiting = sum(sinks.flatMap(({ waiting, active, delayed }) => [waiting, active, delayed]))
  return html`<dl class="numbers">
${fact(words.lagSeen, ...lagOf(sources, words))}
${fact(words.lagDone, ...lagOf(sinks, words))}
${fact(words.queues, words.count(waiting), words.queuesNote)}
${fact(words.today, words.count(sum(sinks.map(({ deliveredToday }) => deliveredToday))), words.bySinks(sinks.length))}
${fact(words.letters, words.count(sum(sinks.map(({ dead }) => dead))), words.lettersNote)}
</dl>`
}

/** Quantiles of several sources or sinks cannot be combined, so those of the slowest one are shown. */
function lagOf(parts: readonly { readonly lag: LagView | null }[], words: PageWords): [string, string] {
  const known = parts.map(({ lag }) => lag).filter((lag) => lag !== null)
  const worst = known.reduce<LagView | undefined>(
    (most, lag) => (most && most.p95 >= lag.p95 ? most : lag),
    undefined,
  )
  if (!worst) return ['–', words.lagNone]
  return [lagText(worst.p50, words), words.p95(lagText(worst.p95, words), known.length > 1)]
}
