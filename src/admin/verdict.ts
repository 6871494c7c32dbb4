import { formatDuration } from '../lib/duration.ts'
import { describeOrphan, type OrphanView } from './orphan-view.ts'
import type { Finding, SinkView, SourceView, StatusFacts, Verdict } from './status-view.ts'

/**
 * The state of the bridge, and what is wrong with it, worst first. Only this function decides that: /readyz, the JSON
 * API, the `status` command and the page all show what it returns. Pure: takes facts and the time, returns a level and
 * sentences.
 *
 * Ready means that this process can do its work. What only a person can mend (a refused token, a receiver that is down)
 * leaves it ready, since another process in its place would do no better, but it is a finding all the same.
 */
export function verdictOf(facts: StatusFacts, nowMs: number): Verdict {
  const found = [
    ...processFindings(facts),
    ...unreadFindings(facts),
    ...facts.sources.flatMap((source) => sourceFindings(source, facts, nowMs)),
    ...facts.sources.flatMap(rulesFindings),
    ...facts.sinks.flatMap(sinkFindings),
    ...(facts.orphans ?? []).map(orphanFinding),
  ]
  const findings = found.sort((a, b) => rankOf(a) - rankOf(b))
  const ready = !findings.some(({ blocks }) => blocks)
  const broken = findings.filter(({ level }) => level === 'failed').length
  return {
    ready,
    level: broken > 0 ? 'failed' : findings.length > 0 ? 'warning' : 'ok',
    headline: headlineOf(ready, broken, findings.length),
    findings,
  }
}

/** The verdict as the first line of an answer in plain text: `ready`, or the headline as a part of a sentence. */
export function wordsOf({ level, headline }: Pick<Verdict, 'level' | 'headline'>): string {
  return level === 'ok' ? 'ready' : `${headline.charAt(0).toLowerCase()}${headline.slice(1)}`
}

/** All findings in one sentence; undefined when there are none. */
export function reasonOf({ findings }: Verdict): string | undefined {
  return findings.map(({ text }) => text).join('; ') || undefined
}

/** A planned poll may start late under load; a poller that is later than this does not work. */
const overdueMs = 60_000
/** The next poll is planned after this one, which may read many pages. */
const walkOverdueMs = 3_600_000

function rankOf({ blocks, level }: Finding): number {
  return (blocks ? 0 : 2) + (level === 'failed' ? 0 : 1)
}

function headlineOf(ready: boolean, broken: number, all: number): string {
  if (all === 0) return 'Alerts are being delivered'
  if (broken === 0) return ready ? `Ready, with ${things(all)} to look at` : 'Not ready yet, or not any more'
  const what = broken === 1 ? 'something is broken' : `${things(broken)} are broken`
  return ready ? `Ready, but ${what}` : `Not ready: ${what}`
}

function things(count: number): string {
  return count === 1 ? 'one thing' : `${count} things`
}

function processFindings({ draining, redis }: StatusFacts): Finding[] {
  const finding = (level: Finding['level'], text: string): Finding => ({
    ...{ level, text, anchor: 'top', blocks: true },
  })
  const why = redis.error ? ` (${redis.error})` : ''
  return [
    ...(draining ? [finding('warning', 'The bridge is draining: it stops')] : []),
    ...(redis.ok ? [] : [finding('failed', `Redis does not answer${why}: polling and sending wait for it`)]),
    ...(redis.trouble ? [finding('failed', redis.trouble)] : []),
  ]
}

/**
 * When Redis was too slow to return some counts, there may be dead letters, or alerts of a sink that left the config. A
 * count that is not known is not shown as 0.
 */
function unreadFindings({ redis, unrouted, orphans, sinks }: StatusFacts): Finding[] {
  const isRead = unrouted !== null && orphans !== null && sinks.every(({ dead }) => dead !== null)
  if (!redis.ok || isRead) return []
  const text = 'Redis is too slow or refuses: some of what waits or was given up on could not be counted'
  return [{ level: 'warning', text, anchor: 'top', blocks: false }]
}

/** An orphan makes nothing fail, but only a person can decide what happens to it. */
function orphanFinding(orphan: OrphanView): Finding {
  const text = describeOrphan(orphan)
  return {
    level: 'warning',
    text: `${text.charAt(0).toUpperCase()}${text.slice(1)}`,
    anchor: 'sinks',
    blocks: false,
  }
}

function sourceFindings(
  source: SourceView,
  { redis, role }: Pick<StatusFacts, 'redis' | 'role'>,
  nowMs: number,
): Finding[] {
  const { name, fault, state } = source
  const finding = (level: Finding['level'], text: string, blocks = false): Finding[] => [
    { level, text: `Source ${name}${text}`, anchor: `source-${name}`, blocks },
  ]
  // `processFindings` reports already that Redis is away.
  if (fault?.why === 'redis_down' && !redis.ok) return []
  if (fault) {
    const text = `${fault.why === 'failing' ? ' fails at every poll' : ''}: ${fault.reason}`
    return finding(fault.why === 'starting' ? 'warning' : 'failed', text, true)
  }
  // A process that ended left its last state, also that it would soon go on.
  const lateMs = lateBy(source, nowMs)
  if (lateMs > (state === 'catching_up' ? walkOverdueMs : overdueMs))
    return finding('failed', ` should have polled ${formatDuration(lateMs)} ago`)
  const why = source.reason ? `: ${source.reason}` : ''
  switch (state) {
    case 'stopped':
      return finding('failed', ` is stopped${why}`)
    case 'failing':
      return finding('failed', ` fails at every poll${why}`)
    case 'budget_spent':
      return finding('warning', ' has spent the budget of the day and waits for the reset')
    case 'retrying':
      return finding('warning', ` cannot be polled now; the bridge tries again${why}`)
    case 'catching_up':
      return finding('warning', ' is behind and catching up')
    case 'queues_full':
      return finding('warning', ` waits${why}`)
    case 'starting':
      // Elsewhere `fault` says so.
      return role === 'sender' && redis.ok
        ? finding('warning', ' was polled by no process yet, as far as Redis shows')
        : []
    case 'standby':
    case 'running':
      return []
    default:
      return state satisfies never
  }
}

/** Silence of the feed may then mean a dead rule. */
function rulesFindings({ name, rules }: SourceView): Finding[] {
  if (rules === null || rules.silentCount === 0) return []
  const which = rules.silentCount === 1 ? 'a rule' : `${rules.silentCount.toLocaleString('en-US')} rules`
  const text = `Source ${name} has ${which} that may not fire`
  return [{ level: 'warning', text, anchor: `source-${name}`, blocks: false }]
}

/** How late another process is with its next poll. For its own loop this process has `fault`, which is more exact. */
function lateBy({ state, here, nextPollAt }: SourceView, nowMs: number): number {
  const isPlanned = ['running', 'catching_up', 'retrying', 'budget_spent', 'queues_full'].includes(state)
  return isPlanned && !here && nextPollAt !== null ? nowMs - Date.parse(nextPollAt) : 0
}

function sinkFindings(sink: SinkView): Finding[] {
  const finding = (level: Finding['level'], text: string, blocks = false): Finding => ({
    ...{ level, text: `Sink ${sink.name} ${text}`, anchor: `sink-${sink.name}`, blocks },
  })
  const queued = (sink.waiting ?? 0) + (sink.delayed ?? 0)
  const wait = queued > 0 ? `; ${queued.toLocaleString('en-US')} wait` : ''
  const why = sink.reason ? ` (${sink.reason})` : ''
  const { state, dead } = sink
  return [
    ...(state === 'open' ? [finding('failed', `is failing and given a rest${why}${wait}`)] : []),
    ...(state === 'stuck' ? [finding('failed', `is stuck: ${sink.reason}`, true)] : []),
    ...(state === 'paused' ? [finding('warning', `is paused${why}${wait}`)] : []),
    ...(dead
      ? [finding('warning', `has ${dead.toLocaleString('en-US')} dead ${dead === 1 ? 'letter' : 'letters'}`)]
      : []),
  ]
}
