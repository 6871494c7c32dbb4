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
export function verdictOf(facts: VerdictFacts, nowMs: number): Verdict {
  const found = [
    ...processFindings(facts),
    ...unreadFindings(facts),
    ...configFindings(facts),
    ...facts.sources.flatMap((source) => sourceFindings(source, facts)),
    ...facts.sources.flatMap(rulesFindings),
    ...facts.sources.flatMap(budgetFindings),
    ...facts.sinks.flatMap((sink) => sinkFindings(sink, nowMs)),
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

type VerdictFacts = Omit<
  StatusFacts,
  'version' | 'startedAt' | 'uptimeSeconds' | 'quarantined' | 'quarantineFellOut'
>

/** The verdict as the first line of an answer in plain text: `ready`, or the headline as a part of a sentence. */
export function verdictLine({ level, headline }: Pick<Verdict, 'level' | 'headline'>): string {
  return level === 'ok' ? 'ready' : `${headline.charAt(0).toLowerCase()}${headline.slice(1)}`
}

/** All findings in one sentence; undefined when there are none. */
export function findingsText({ findings }: Verdict): string | undefined {
  return findings.map(({ text }) => text).join('; ') || undefined
}

/** The troubles that a bridge with these sources and sinks may have notices of: those of `Finding.trouble`. */
export function troublesOf({ sources, sinks }: Pick<VerdictFacts, 'sources' | 'sinks'>): string[] {
  return [
    'configs',
    ...sources.map(({ name }) => `thin:${name}`),
    ...sinks.flatMap(({ name }) => [`late:${name}`, `refuses:${name}`]),
  ]
}

/** An alert that waits longer than this is late, when what waits with it takes as long. */
const lateMs = 2 * 60_000
/** An alert that waits longer than this comes too late to be of use. */
const tooLateMs = 30 * 60_000
/** One alert may be refused for what it is; so many in a row are refused for what the sink is. */
const refusedMin = 3

/** A sink that works, but takes nothing of what it gets. */
export function refusesEverything({ state, refusedInARow }: SinkView): boolean {
  return state === 'active' && (refusedInARow ?? 0) >= refusedMin
}

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

function processFindings({ draining, redis }: VerdictFacts): Finding[] {
  const finding = (level: Finding['level'], text: string): Finding => ({
    ...{ level, text, href: '#top', blocks: true },
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
function unreadFindings({ redis, unrouted, orphans, sinks }: VerdictFacts): Finding[] {
  const isRead = unrouted !== null && orphans !== null && sinks.every(({ dead }) => dead !== null)
  if (!redis.ok || isRead) return []
  const text = 'Redis is too slow or refuses: some of what waits or was given up on could not be counted'
  return [{ level: 'warning', text, href: '#top', blocks: false }]
}

function configFindings({ refusedReload, processes }: VerdictFacts): Finding[] {
  const finding = (text: string): Finding => ({ level: 'warning', text, href: '#top', blocks: false })
  const others = processes.filter(({ hasOurConfig }) => !hasOurConfig)
  const who = others.map(({ name, role }) => `${name} (${role})`).join('; ')
  const more =
    refusedReload && refusedReload.mistakes.length > 1 ? ` and ${refusedReload.mistakes.length - 1} more` : ''
  return [
    ...(refusedReload
      ? [
          finding(
            `The last reload was refused, the config before it goes on: ${refusedReload.mistakes[0]}${more}`,
          ),
        ]
      : []),
    ...(others.length > 0
      ? [
          {
            ...finding(`Another config is in force beside the one of this process: ${who}`),
            trouble: 'configs',
          },
        ]
      : []),
  ]
}

/** An orphan makes nothing fail, but only a person can decide what happens to it. */
function orphanFinding(orphan: OrphanView): Finding {
  const text = describeOrphan(orphan)
  return {
    level: 'warning',
    text: `${text.charAt(0).toUpperCase()}${text.slice(1)}`,
    href: '#sinks',
    blocks: false,
  }
}

function sourceFindings(
  source: SourceView,
  { redis, role }: Pick<VerdictFacts, 'redis' | 'role'>,
): Finding[] {
  const { name, fault, state, here, overdueSeconds } = source
  const finding = (level: Finding['level'], text: string, blocks = false): Finding[] => [
    { level, text: `Source ${name}${text}`, href: `#source-${name}`, blocks },
  ]
  // `processFindings` reports already that Redis is away.
  if (fault?.why === 'redis_down' && !redis.ok) return []
  if (fault) {
    const text = `${fault.why === 'failing' ? ' fails at every poll' : ''}: ${fault.reason}`
    return finding(fault.why === 'starting' ? 'warning' : 'failed', text, true)
  }
  // A process that ended left its last state, also that it would soon go on. Of its own loop this process has `fault`.
  if (!here && overdueSeconds > 0)
    return finding('failed', ` should have polled ${formatDuration(overdueSeconds * 1_000)} ago`)
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
  return [{ level: 'warning', text, href: `#source-${name}`, blocks: false }]
}

function budgetFindings({ name, budget }: SourceView): Finding[] {
  const [first] = budget?.tooThin ?? []
  if (first === undefined) return []
  const text = `Source ${name} has too few units: ${first}`
  return [{ level: 'warning', text, href: `#source-${name}`, blocks: false, trouble: `thin:${name}` }]
}

function sinkFindings(sink: SinkView, nowMs: number): Finding[] {
  const finding = (level: Finding['level'], text: string, blocks = false): Finding => ({
    ...{ level, text: `Sink ${sink.name} ${text}`, href: `#sink-${sink.name}`, blocks },
  })
  const { name, state, lastResult, refusedInARow } = sink
  const queued = (sink.waiting ?? 0) + (sink.delayed ?? 0)
  const wait = queued > 0 ? `; ${countText(queued)} wait` : ''
  const why = sink.reason ? ` (${sink.reason})` : ''
  const deadHref = `?${new URLSearchParams({ sink: name, state: 'dead' })}#deliveries`
  const dead = sink.dead ?? 0
  if (refusesEverything(sink)) {
    const text = `refuses everything: the last ${countText(refusedInARow ?? 0)} alerts were given up on (${lastResult?.text ?? 'no reason known'})`
    return [{ ...finding('failed', text), href: deadHref, trouble: `refuses:${name}` }]
  }
  return [
    ...lateFindings(sink, nowMs),
    ...(state === 'open' ? [finding('failed', `is failing and given a rest${why}${wait}`)] : []),
    ...(state === 'stuck' ? [finding('failed', `is stuck: ${sink.reason}`, true)] : []),
    ...(state === 'paused'
      ? [
          finding(
            'warning',
            `is paused${sink.pausedUntil === null ? '' : ` until ${sink.pausedUntil}`}${why}${wait}`,
          ),
        ]
      : []),
    ...(dead > 0
      ? [
          {
            ...finding('warning', `has ${countText(dead)} dead ${dead === 1 ? 'letter' : 'letters'}`),
            href: deadHref,
          },
        ]
      : []),
  ]
}

/**
 * A sink that works, but slower than alerts come. An old alert alone is none: it may be a retry whose time has come; nor is a long
 * queue that was filled a moment ago.
 */
function lateFindings(
  { name, state, waiting, oldestWaitingAt, drainSeconds }: SinkView,
  nowMs: number,
): Finding[] {
  const oldestMs = oldestWaitingAt === null ? 0 : nowMs - Date.parse(oldestWaitingAt)
  const drainMs = drainSeconds === null ? oldestMs : drainSeconds * 1_000
  if (state !== 'active' || Math.min(oldestMs, drainMs) < lateMs) return []
  const pace =
    drainSeconds === null ? 'nothing was sent meanwhile' : `at this pace for ${formatDuration(drainMs)} more`
  const text = `Sink ${name} is too slow: ${countText(waiting ?? 0)} wait, the oldest for ${formatDuration(oldestMs)}; ${pace}`
  const level = Math.max(oldestMs, drainMs) < tooLateMs ? 'warning' : 'failed'
  return [{ level, text, href: `#sink-${name}`, blocks: false, trouble: `late:${name}` }]
}

function countText(count: number): string {
  return count.toLocaleString('en-US')
}
