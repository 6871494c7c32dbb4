import { formatDuration } from '../../lib/duration.ts'
import { describeOrphan, type OrphanView } from '../orphan-view.ts'
import type { SinkView, SourceView, StatusView } from '../status-view.ts'
import { formatCount } from './times.ts'

/**
 * The one thing that somebody who was woken up wants to know: is it healthy, and if not, what is wrong, worst first.
 * Pure: what the status says and the time in, a level and sentences out.
 */
export interface Verdict {
  readonly level: Level
  readonly headline: string
  /** Worst first. */
  readonly findings: readonly Finding[]
}

export type Level = 'ok' | 'warning' | 'failed'

export interface Finding {
  readonly level: Exclude<Level, 'ok'>
  readonly text: string
  /** The part of the page that says more. */
  readonly anchor: string
}

export function verdictOf(status: StatusView, nowMs: number): Verdict {
  const findings = [
    ...redisFindings(status),
    ...status.sources.flatMap((source) => sourceFindings(source, nowMs)),
    ...status.sinks.flatMap(sinkFindings),
    ...(status.orphans ?? []).map(orphanFinding),
    ...readyFindings(status),
  ]
  const failed = findings.filter(({ level }) => level === 'failed')
  const warnings = findings.filter(({ level }) => level === 'warning')
  return {
    level: failed.length > 0 ? 'failed' : warnings.length > 0 ? 'warning' : 'ok',
    headline: headlineOf(failed.length, warnings.length),
    findings: [...failed, ...warnings],
  }
}

/** A planned poll may start late under load; a poller this late is not coming. */
const overdueMs = 60_000

function headlineOf(failed: number, warnings: number): string {
  if (failed > 0) return failed === 1 ? 'Something is broken' : `${failed} things are broken`
  if (warnings > 0)
    return warnings === 1
      ? 'Working, with one thing to look at'
      : `Working, with ${warnings} things to look at`
  return 'Alerts are being delivered'
}

function redisFindings({ redis }: StatusView): Finding[] {
  if (redis.ok) return []
  const text = `Redis does not answer${redis.error ? ` (${redis.error})` : ''}: polling and sending wait for it`
  return [{ level: 'failed', text, anchor: 'top' }]
}

function readyFindings({ ready, redis }: StatusView): Finding[] {
  return ready.ok || !redis.ok
    ? []
    : [{ level: 'warning', text: `Not ready: ${ready.reason}`, anchor: 'top' }]
}

/** Nothing fails because of it, and nothing becomes of it without a person. */
function orphanFinding(orphan: OrphanView): Finding {
  const text = describeOrphan(orphan)
  return { level: 'warning', text: `${text.charAt(0).toUpperCase()}${text.slice(1)}`, anchor: 'sinks' }
}

function sourceFindings(source: SourceView, nowMs: number): Finding[] {
  const finding = (level: Finding['level'], text: string): Finding[] => [
    { level, text: `Source ${source.name} ${text}`, anchor: `source-${source.name}` },
  ]
  const why = source.reason ? `: ${source.reason}` : ''
  switch (source.state) {
    case 'stopped':
      return finding('failed', `is stopped${why}`)
    case 'failing':
      return finding('failed', `fails at every poll${why}`)
    case 'budget_spent':
      return finding('warning', 'has spent the budget of the day and waits for the reset')
    case 'retrying':
      return finding('warning', `failed its last call and tries again${why}`)
    case 'catching_up':
      return finding('warning', 'is behind and catching up')
    case 'starting':
    case 'standby':
      return []
    case 'running': {
      const lateMs = source.nextPollAt === null ? 0 : nowMs - Date.parse(source.nextPollAt)
      return lateMs > overdueMs ? finding('failed', `should have polled ${formatDuration(lateMs)} ago`) : []
    }
    default:
      return source.state satisfies never
  }
}

function sinkFindings(sink: SinkView): Finding[] {
  const anchor = `sink-${sink.name}`
  const queued = (sink.waiting ?? 0) + (sink.delayed ?? 0)
  const wait = queued > 0 ? `; ${formatCount(queued)} wait` : ''
  const why = sink.reason ? ` (${sink.reason})` : ''
  const findings: Finding[] = []
  if (sink.state === 'open')
    findings.push({
      level: 'failed',
      text: `Sink ${sink.name} is failing and given a rest${why}${wait}`,
      anchor,
    })
  if (sink.state === 'stuck')
    findings.push({ level: 'failed', text: `Sink ${sink.name} is stuck${why}`, anchor })
  if (sink.state === 'paused')
    findings.push({ level: 'warning', text: `Sink ${sink.name} is paused${why}${wait}`, anchor })
  if (sink.dead)
    findings.push({
      level: 'warning',
      text: `Sink ${sink.name} has ${formatCount(sink.dead)} dead ${sink.dead === 1 ? 'letter' : 'letters'}`,
      anchor,
    })
  return findings
}
