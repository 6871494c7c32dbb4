import { findingText, type Saying } from './finding.ts'
import type { OrphanView } from './views/orphan-view.ts'
import type { Finding, SinkView, SourceView, StatusFacts, Verdict } from './views/status-view.ts'

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
    ...quarantineFindings(facts),
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

type VerdictFacts = Omit<StatusFacts, 'version' | 'startedAt' | 'uptimeSeconds' | 'quarantineFellOut'>

/** The verdict as the first line of an answer in plain text: `ready`, or the headline as a part of a sentence. */
export function verdictLine({ level, headline }: Pick<Verdict, 'level' | 'headline'>): string {
  return level === 'ok' ? 'ready' : `${headline.charAt(0).toLowerCase()}${headline.slice(1)}`
}

/** All findings in one sentence; undefined when there are none. */
export function findingsText({ findings }: Verdict): string | undefined {
  return findings.map(({ text }) => text).join('; ') || undefined
}

/**
 * The troubles that these would show now, those of `Finding.trouble`: of one that is not found, people are told that it is over. What
 * Redis did not return in time shows nothing.
 */
export function troublesOf({
  sources,
  sinks,
  processes,
}: Pick<VerdictFacts, 'sources' | 'sinks' | 'processes'>): string[] {
  return [
    ...(processes.length > 0 ? ['configs'] : []),
    'reload',
    ...sources.flatMap(({ name, budget }) => (budget === null ? [] : [`thin:${name}`])),
    ...sinks.flatMap(sinkTroubles),
  ]
}

/** A sink that is held, as by who was told of its trouble, shows neither; one that refuses everything does not show whether it is slow. */
function sinkTroubles(sink: SinkView): string[] {
  const { name, state, waiting } = sink
  if (state !== 'active' || waiting === null) return []
  return refusesEverything(sink) ? [`refuses:${name}`] : [`late:${name}`, `refuses:${name}`]
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

/** A sink that asked for a pause, or has put off everything for long: its alerts wait, though nothing is wrong with it. */
export function putsOff(sink: Pick<SinkView, 'state' | 'putOffSince' | 'heldUntil'>, nowMs: number): boolean {
  return sink.heldUntil !== null || putsEverythingOff(sink, nowMs)
}

/** A sink that answers, and takes nothing: each alert is to be tried again later. */
function putsEverythingOff(
  { state, putOffSince }: Pick<SinkView, 'state' | 'putOffSince'>,
  nowMs: number,
): boolean {
  return state === 'active' && putOffSince !== null && nowMs - Date.parse(putOffSince) >= tooLateMs
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

function findingOf(
  level: Finding['level'],
  href: string,
  saying: Saying,
  more: Partial<Pick<Finding, 'blocks' | 'trouble'>> = {},
): Finding {
  return { level, text: findingText(saying), ...saying, href, blocks: false, ...more }
}

function processFindings({ draining, redis }: VerdictFacts): Finding[] {
  const finding = (level: Finding['level'], saying: Saying) =>
    findingOf(level, '#top', saying, { blocks: true })
  const { ok, error = null, trouble } = redis
  return [
    ...(draining ? [finding('warning', { code: 'draining', data: {} })] : []),
    ...(ok ? [] : [finding('failed', { code: 'redis_away', data: { reason: error } })]),
    ...(trouble ? [finding('failed', { code: 'redis_unsafe', data: { reason: trouble } })] : []),
  ]
}

/**
 * When Redis was too slow to return some counts, there may be dead letters, or alerts of a sink that left the config. A
 * count that is not known is not shown as 0.
 */
function unreadFindings({ redis, unrouted, orphans, sinks }: VerdictFacts): Finding[] {
  const isRead = unrouted !== null && orphans !== null && sinks.every(({ dead }) => dead !== null)
  return !redis.ok || isRead ? [] : [findingOf('warning', '#top', { code: 'redis_uncounted', data: {} })]
}

function configFindings({ refusedReload, processes }: VerdictFacts): Finding[] {
  const [reason, ...more] = refusedReload?.mistakes ?? []
  const refused = reason !== undefined && {
    code: 'reload_refused' as const,
    data: { reason, more: more.length },
  }
  const others = processes.filter(({ hasOurConfig }) => !hasOurConfig)
  const data = { processes: others.map(({ name, role }) => ({ name, role })) }
  return [
    ...(refused ? [findingOf('warning', '#top', refused, { trouble: 'reload' })] : []),
    ...(others.length > 0
      ? [findingOf('warning', '#top', { code: 'configs_differ', data }, { trouble: 'configs' })]
      : []),
  ]
}

/** Their alerts reached nobody, and nobody but a person knows whether they matter. */
function quarantineFindings({ quarantined }: VerdictFacts): Finding[] {
  const count = quarantined ?? 0
  return count === 0 ? [] : [findingOf('warning', '#sources', { code: 'rows_quarantined', data: { count } })]
}

/** An orphan makes nothing fail, but only a person can decide what happens to it. */
function orphanFinding(orphan: OrphanView): Finding {
  return findingOf('warning', '#sinks', { code: 'orphaned', data: orphan })
}

function sourceFindings(
  { name: source, fault, state, here, overdueSeconds, reason }: SourceView,
  { redis, role }: Pick<VerdictFacts, 'redis' | 'role'>,
): Finding[] {
  const finding = (level: Finding['level'], saying: Saying, blocks = false) => [
    findingOf(level, `#source-${source}`, saying, { blocks }),
  ]
  // `processFindings` reports already that Redis is away.
  if (fault?.why === 'redis_down' && !redis.ok) return []
  if (fault) {
    const data = { source, reason: fault.reason }
    return finding(
      fault.why === 'starting' ? 'warning' : 'failed',
      { code: faultCodes[fault.why], data },
      true,
    )
  }
  // A process that ended left its last state, also that it would soon go on. Of its own loop this process has `fault`.
  if (!here && overdueSeconds > 0)
    return finding('failed', { code: 'source_overdue', data: { source, seconds: overdueSeconds } })
  switch (state) {
    case 'stopped':
      return finding('failed', { code: 'source_stopped', data: { source, reason } })
    case 'failing':
      return finding('failed', { code: 'source_failing', data: { source, reason } })
    case 'budget_spent':
      return finding('warning', { code: 'source_budget_spent', data: { source } })
    case 'retrying':
      return finding('warning', { code: 'source_retrying', data: { source, reason } })
    case 'catching_up':
      return finding('warning', { code: 'source_catching_up', data: { source, reason } })
    case 'queues_full':
      return finding('warning', { code: 'source_queues_full', data: { source, reason } })
    case 'starting':
      // Elsewhere `fault` says so.
      return role === 'sender' && redis.ok
        ? finding('warning', { code: 'source_unpolled', data: { source } })
        : []
    case 'standby':
    case 'running':
      return []
    default:
      return state satisfies never
  }
}

const faultCodes = {
  starting: 'source_starting',
  crashed: 'source_crashed',
  stuck: 'source_stuck',
  redis_down: 'source_redis_away',
  failing: 'source_failing',
} as const

/** Silence of the feed may then mean a dead rule. */
function rulesFindings({ name: source, rules }: SourceView): Finding[] {
  if (rules === null || rules.silentCount === 0) return []
  const data = { source, count: rules.silentCount }
  return [findingOf('warning', `#source-${source}`, { code: 'source_rules_silent', data })]
}

function budgetFindings({ name: source, budget }: SourceView): Finding[] {
  const [reason] = budget?.tooThin ?? []
  if (reason === undefined) return []
  const saying: Saying = { code: 'source_budget_thin', data: { source, reason } }
  return [findingOf('warning', `#source-${source}`, saying, { trouble: `thin:${source}` })]
}

function sinkFindings(view: SinkView, nowMs: number): Finding[] {
  const { name: sink, state, lastResult, refusedInARow, reason } = view
  const href = `#sink-${sink}`
  const queued = (view.waiting ?? 0) + (view.delayed ?? 0)
  const deadHref = `?${new URLSearchParams({ sink, state: 'dead' })}#deliveries`
  const dead = view.dead ?? 0
  if (refusesEverything(view)) {
    const data = { sink, count: refusedInARow ?? 0, reason: lastResult?.text ?? null }
    return [findingOf('failed', deadHref, { code: 'sink_refuses', data }, { trouble: `refuses:${sink}` })]
  }
  const own: Record<SinkView['state'], () => Finding[]> = {
    active: () => lateFindings(view, nowMs).concat(putOffFindings(view, nowMs)).slice(0, 1),
    open: () => [findingOf('failed', href, { code: 'sink_failing', data: { sink, reason, queued } })],
    stuck: () => [
      findingOf('failed', href, { code: 'sink_stuck', data: { sink, reason } }, { blocks: true }),
    ],
    paused: () => [
      findingOf('warning', href, {
        code: 'sink_paused',
        data: { sink, until: view.pausedUntil, reason, queued },
      }),
    ],
  }
  return [
    ...own[state](),
    ...(dead > 0
      ? [findingOf('warning', deadHref, { code: 'sink_dead_letters', data: { sink, count: dead } })]
      : []),
  ]
}

/**
 * A sink that works, but slower than alerts come. An old alert alone is none: it may be a retry whose time has come; nor is a long
 * queue that was filled a moment ago.
 */
function lateFindings(
  { name: sink, waiting, oldestWaitingAt, drainSeconds, heldUntil }: SinkView,
  nowMs: number,
): Finding[] {
  const oldestMs = oldestWaitingAt === null ? 0 : nowMs - Date.parse(oldestWaitingAt)
  const drainMs = drainSeconds === null ? oldestMs : drainSeconds * 1_000
  if (Math.min(oldestMs, drainMs) < lateMs) return []
  const level = Math.max(oldestMs, drainMs) < tooLateMs ? 'warning' : 'failed'
  const data = { sink, waiting: waiting ?? 0, oldestSeconds: oldestMs / 1_000, drainSeconds, heldUntil }
  return [findingOf(level, `#sink-${sink}`, { code: 'sink_slow', data }, { trouble: `late:${sink}` })]
}

/**
 * A sink that answers and takes nothing, as where the quota of a day is spent: it is not down, so no breaker opens, and for a day, until
 * the first alert is given up on, nothing else would say so.
 */
function putOffFindings(view: SinkView, nowMs: number): Finding[] {
  if (!putsEverythingOff(view, nowMs)) return []
  const { name: sink, delayed, putOffSince } = view
  const seconds = (nowMs - Date.parse(putOffSince ?? '')) / 1_000
  const data = { sink, delayed: delayed ?? 0, seconds }
  return [findingOf('warning', `#sink-${sink}`, { code: 'sink_puts_off', data }, { trouble: `late:${sink}` })]
}
