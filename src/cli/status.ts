import type { Command } from 'commander'
import { formatCount, lagText } from '../admin/page/words/en.ts'
import { purposeWords } from '../admin/purpose-words.ts'
import { putsOff, refusesEverything, verdictLine } from '../admin/verdict.ts'
import type {
  BudgetStatus,
  Finding,
  PlanStatus,
  RulesStatus,
  SinkView,
  SourceView,
  StatusView,
} from '../admin/views/status-view.ts'
import { formatDuration } from '../lib/duration.ts'
import { printable } from '../telemetry/printable.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { clearScreen, untilStopped, watch } from './client/watch.ts'
import { namedCommand } from './command-texts.ts'
import { print, printJson, sentence } from './output/output.ts'
import { table } from './output/table.ts'
import { announcedText } from './plan/picture.ts'

/** `status`: sources, sinks, lag and budget of a running bridge. Exit code 1 when it is not ready. */
export function statusCommand(): Command {
  return daemonCommand(namedCommand('status'))
    .option('--watch', 'again every 2 seconds, until Ctrl-C')
    .action(async ({ watch: isWatched, ...options }: DaemonOptions & { watch?: boolean }) => {
      const daemon = connectDaemon(options)
      const look = async () => {
        const status = (await daemon.get('/api/v1/status')) as StatusView
        if (isWatched) clearScreen()
        if (options.json) printJson(status)
        else print(describeStatus(status, Date.now()))
        return status.ready.ok
      }
      if (isWatched) return watch(async () => void (await look()), watchEveryMs, untilStopped())
      if (!(await look())) process.exitCode = 1
    })
}

const watchEveryMs = 2_000

export function describeStatus(status: StatusView, nowMs: number): string {
  const { verdict, version, uptimeSeconds, role } = status
  const up = formatDuration(uptimeSeconds * 1_000)
  return [
    printable(`alert-bridge ${version}, ${role}, up ${up}: ${verdictLine(verdict)}`),
    ...verdict.findings.map(findingLine),
    '',
    table(
      ['SOURCE', 'STATE', 'LAST POLL', 'NEXT POLL', 'WHY', 'UNITS', 'RESETS', 'LAG P50/P95'],
      status.sources.map((source) => sourceRow(source, nowMs)),
    ),
    ...status.sources.flatMap(({ name, reason, budget, plan, rules, notes }) =>
      [
        reason,
        ...notes,
        budget && spentText(budget),
        budget?.note,
        plan && planText(plan),
        rules && rulesText(rules, nowMs),
      ].flatMap((text) => (text ? [`  ${name}: ${sentence(text)}`] : [])),
    ),
    '',
    table(
      ['SINK', 'TYPE', 'STATE', 'WAITING', 'ACTIVE', 'DELAYED', 'DEAD', 'LAST RESULT'],
      status.sinks.map((sink) => sinkRow(sink, nowMs)),
    ),
    '',
    printable(countsText(status)),
  ].join('\n')
}

function findingLine({ text, data }: Finding): string {
  const { reason } = { reason: null, ...data }
  return `  ${sentence(text, reason)}`
}

function countsText({ unrouted, quarantined, quarantineFellOut }: StatusView): string {
  const shown = quarantined ? ' (quarantine list shows them)' : ''
  const gone = quarantineFellOut ? `; the copies of ${quarantineFellOut} rows are gone` : ''
  return `unrouted ${unrouted ?? '?'}, quarantined ${quarantined ?? '?'}${shown}${gone}`
}

function sourceRow(source: SourceView, nowMs: number): string[] {
  const { budget, lag } = source
  return [
    source.name,
    source.behind ? `${source.state}, behind` : source.state,
    ago(source.lastPollAt, nowMs),
    ahead(source.nextPollAt, nowMs),
    source.nextReason ?? '-',
    budget ? `${budget.unitsUsed}/${budget.unitsPerDay}` : '-',
    ahead(budget?.resetsAt ?? null, nowMs),
    lag ? `${lagText(lag.p50)}/${lagText(lag.p95)}` : '-',
  ]
}

/** `units spent for polls 1,180, context 38`, where something was spent. */
function spentText({ spentFor }: BudgetStatus): string | null {
  const parts = spentFor.map(({ purpose, units }) => `${purposeWords[purpose]} ${formatCount(units)}`)
  return parts.length === 0 ? null : `units spent for ${parts.join(', ')}`
}

function planText({ learnedFrom, firing, announced, hotUntil }: PlanStatus): string {
  const hot = hotUntil === null ? '' : `; hot until ${hotUntil}`
  const from = learnedFrom > 0 ? `learned from ${learnedFrom} alerts` : 'as configured so far'
  const rules = announced ? `. ${announcedText(announced)}` : ''
  return `plan ${from}; alerts fire ${firing}${hot}${rules}`
}

function rulesText({ readAt, count, unread, silentCount, silent }: RulesStatus, nowMs: number): string {
  const those = unread > 0 ? `the newest ${count} of ${count + unread}` : `${count}`
  const read = `${those} alert ${count === 1 ? 'rule' : 'rules'}, read ${ago(readAt, nowMs)}`
  if (silentCount === 0) return read
  const shown = silent.slice(0, silentShownMax).map(({ id, text }) => `${id} ${text}`)
  const more = silentCount > shown.length ? `; and ${silentCount - shown.length} more` : ''
  return `${read}; ${silentCount} may not fire: ${shown.join('; ')}${more} (rules shows all)`
}

const silentShownMax = 5

function sinkRow(sink: SinkView, nowMs: number): string[] {
  const { lastResult } = sink
  return [
    sink.name,
    sink.type,
    stateOf(sink, nowMs),
    ...[sink.waiting, sink.active, sink.delayed, sink.dead].map((count) => String(count ?? '?')),
    lastResult ? `${lastResult.kind} ${ago(lastResult.at, nowMs)}: ${lastResult.text}` : '-',
  ]
}

function stateOf(sink: SinkView, nowMs: number): string {
  // Without Redis nobody knows whether it is paused.
  if (sink.waiting === null) return '?'
  const state = refusesEverything(sink) ? 'refusing' : putsOff(sink, nowMs) ? 'putting off' : sink.state
  return sink.reason ? `${state} (${sink.reason})` : state
}

function ago(at: string | null, nowMs: number): string {
  return at === null ? '-' : `${formatDuration(Math.max(0, nowMs - Date.parse(at)))} ago`
}

function ahead(at: string | null, nowMs: number): string {
  if (at === null) return '-'
  const aheadMs = Date.parse(at) - nowMs
  if (aheadMs >= 0) return `in ${formatDuration(aheadMs)}`
  return aheadMs > -1_000 ? 'now' : ago(at, nowMs)
}
