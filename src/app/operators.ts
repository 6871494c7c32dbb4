import type { OrphanView } from '../admin/orphan-view.ts'
import type { Finding } from '../admin/status-view.ts'
import type { SinkQueues } from '../delivery/queues.ts'
import type { BreakerChange, LaneState } from '../delivery/sender.ts'
import type { Clock } from '../lib/clock.ts'
import { formatDuration } from '../lib/duration.ts'
import { toError } from '../lib/errors.ts'
import { failingMsMax, lastingFailure, overdueMs } from '../poller/status.ts'
import type { NoticeStore } from '../store/notices.ts'
import type { QuarantineCounts } from '../store/quarantine.ts'
import type { PollerStatus } from '../store/source-status.ts'
import type { UnsentNotice } from '../store/unsent-notices.ts'
import type { Logger } from '../telemetry/log.ts'
import { allOf, noticeMaker, noticeSender } from './notice-sender.ts'
import type { Notice } from './notices.ts'
import { createOutages, outage, troubleMs } from './outages.ts'
import type { RulesReport } from './rule-notices.ts'
import { createTroubles } from './troubles.ts'

/**
 * Sends notices to the sinks in `operators:`: when a sink fails, and when it works again; when alerts were given up on
 * (one notice per sink and hour, with the count); when rows could not be read (the same per source); when a source needs
 * a person, or no process polls it; when rules of it may not fire (one notice for all that a reading shows), and when they are in
 * order again; when a name leaves the config with something left; and of what else the verdict names as a trouble, in its
 * words, once it has lasted a minute. A notice about a sink is not sent to that sink. Without Redis, only the log and the status
 * page report the same. What people were notified of is stored in one step with the notice, so that a restart neither repeats
 * one nor loses one.
 */
export interface Operators {
  onBreaker(news: BreakerChange): void
  /** Something is left of a name that is not in the config: one notice, until nothing is left or the name is back. */
  onOrphan(orphan: OrphanView): void
  onNoOrphan(orphan: Pick<OrphanView, 'kind' | 'name'>): void
  /** The notice that a source has a new name, to be stored by who gives it that; undefined where nobody gets it. */
  renamed(from: string, to: string): UnsentNotice | undefined
  /** The rules of a source were read. */
  onRules(source: string, report: RulesReport): void
  /** Checks sinks and sources until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

interface OperatorTargets {
  /** Names of sinks. */
  readonly operators: readonly string[]
  readonly queues: Pick<SinkQueues, 'sinks' | 'enqueue' | 'failingSince' | 'failedSince' | 'completedSince'>
  readonly targets: ReadonlyMap<string, readonly (string | undefined)[]>
  readonly timeZone: string
}

interface SourceReport {
  readonly status: PollerStatus
  /** undefined when it cannot be read now. */
  readonly quarantine: QuarantineCounts | undefined
}

/** What a look reads of all sinks and sources by one command each. */
interface Seen {
  /** Troubles that people were notified of, and since when. */
  readonly begun: ReadonlyMap<string, number>
  /** Sinks that may have given up on an alert within the hour. */
  readonly failing: ReadonlySet<string>
  /** Sinks whose breaker is open in this process, and why. */
  readonly open: ReadonlyMap<string, string>
  /** Those of them that are down by what all replicas share: while this one was frozen, another may have found that it answers. */
  readonly kept: ReadonlySet<string>
}

interface FindingsNow {
  readonly findings: readonly Pick<Finding, 'text' | 'trouble'>[]
  readonly troubles: readonly string[]
}

interface OperatorsOptions {
  /** Of the config in force. */
  readonly active: () => OperatorTargets
  readonly sources: () => Promise<readonly SourceReport[]>
  /** What the status page says is wrong, with every trouble that may be among it; undefined when it cannot be read now. */
  readonly findings?: () => Promise<FindingsNow | undefined>
  /** Of this process. */
  readonly breakers: () => readonly Pick<LaneState, 'sink' | 'breaker' | 'reason'>[]
  /** Which of these sinks are down by what all replicas share, in their order; those of this process alone where that is absent. */
  readonly kept?: (sinks: readonly string[]) => Promise<readonly unknown[]>
  readonly store: NoticeStore
  readonly clock: Clock
  readonly log: Logger
  readonly lookEveryMs?: number | undefined
}

const hourMs = 3_600_000
/** An instant of another process, by the clock of this one, varies by less. */
const clockJitterMs = 500
/** People who leave an orphan where it is get the next notice of it only after this time. */
const orphanMs = 30 * 24 * hourMs

/** A sink counts as working again when no replica's breaker was open for so many checks (a minute). */
const wellLooksMin = 12

export function createOperators(options: OperatorsOptions): Operators {
  const { active, sources, breakers, store, clock, log, lookEveryMs = 5_000 } = options
  const { sendUnsent } = noticeSender(options)
  const toUnsent = noticeMaker(clock, () => active().timeZone)
  const troubles = createTroubles({ store, toUnsent })
  const outages = createOutages({ store, troubles, clock, quietMs: wellLooksMin * lookEveryMs })
  /** Sources without a poll though one is due, and since when that is seen, by the monotonic clock. */
  const unpolledSources = new Map<string, { readonly dueAtMs: number | null; readonly sinceMs: number }>()
  let lastWork: Promise<void> = Promise.resolve()
  /** One after the other, so that the notice of an end never comes before that of its beginning. Best effort. */
  const attempt = (work: () => Promise<void>) => {
    lastWork = lastWork
      .then(() => work().finally(sendUnsent))
      .catch((thrown: unknown) => log.warn({ err: toError(thrown) }, 'operators.not_notified'))
    return lastWork
  }

  const lookAtDead = async (sink: string, queues: OperatorTargets['queues']) => {
    const nowMs = clock.now()
    const toldMs = await store.at(sink)
    // By a clock that was ahead: nothing would count until this one has caught up.
    const isAhead = toldMs !== undefined && toldMs > nowMs + hourMs
    const sinceMs = toldMs === undefined || isAhead ? nowMs - hourMs : toldMs
    const count = await queues.failedSince(sink, sinceMs + 1)
    if (count === 0) return
    const notice = toUnsent({ kind: 'dead_letters', sink, count, sinceMs })
    const moved = { what: sink, to: nowMs }
    await store.begin(`dead:${sink}`, { againMs: hourMs, notice, moved })
  }
  const lookAtSink = async (sink: string, queues: OperatorTargets['queues'], seen: Seen) => {
    const reason = seen.open.get(sink)
    if (reason === undefined) await outages.recover(sink, queues, seen.begun)
    else if (seen.kept.has(sink)) await outages.open(sink, reason, clock.now())
    if (seen.failing.has(sink)) await lookAtDead(sink, queues)
  }
  const unpolled = (status: PollerStatus): string | undefined => {
    const { source, state, nextPollAtMs: dueAtMs } = status
    const lateMs = overdueMs(status, clock.now())
    if (lateMs === 0 && state !== 'starting') return void unpolledSources.delete(source)
    const before = unpolledSources.get(source)
    // Where another poll is due than before, one was made: the clock of the process that polls is behind ours.
    const isSame = Math.abs((before?.dueAtMs ?? 0) - (dueAtMs ?? 0)) < clockJitterMs
    const sinceMs = before && isSame ? before.sinceMs : clock.monotonicMs()
    unpolledSources.set(source, { dueAtMs, sinceMs })
    if (clock.monotonicMs() - sinceMs < failingMsMax) return undefined
    const due = lateMs === 0 ? '' : `: it should have polled ${formatDuration(lateMs)} ago`
    return `no process polls it${due}`
  }
  const lookAtSource = async ({ status, quarantine }: SourceReport, { begun }: Pick<Seen, 'begun'>) => {
    const { source: sourceName, state, reason, failingSinceMs } = status
    const [stopped, failing] = troublesOfSource(sourceName)
    const failure = unpolled(status) ?? lastingFailure(status)
    if (state === 'stopped') {
      await troubles.begin(stopped, troubleMs, { kind: 'source_stopped', sourceName, reason })
    } else if (failure !== undefined) {
      await troubles.begin(failing, troubleMs, { kind: 'source_failing', sourceName, reason: failure })
    } else if (state === 'waiting' && failingSinceMs === null && !unpolledSources.has(sourceName)) {
      await troubles.repeat(failing)
      if (begun.has(stopped) || begun.has(failing))
        await troubles.end([stopped, failing], { kind: 'source_resumed', sourceName, reason })
    }
    if (quarantine !== undefined) await lookAtRows(sourceName, quarantine)
  }
  const lookAtRows = async (sourceName: string, { ever, quarantined }: QuarantineCounts) => {
    const what = `rows:${sourceName}`
    if (quarantined === 0) return
    const before = (await store.at(what)) ?? 0
    // Rows that were dropped or read since are not counted; after a loss of Redis the count starts at 0.
    const count = Math.min(quarantined, ever < before ? ever : ever - before)
    if (count === 0) return
    const notice = toUnsent({ kind: 'rows_set_aside', sourceName, count })
    await store.begin(what, { againMs: hourMs, notice, moved: { what, to: ever } })
  }
  let looks = 0
  let before: readonly string[] = []
  /** Once a minute, and only what was so at two such looks: while a config is rolled out, replicas differ for a moment. */
  const lookAtFindings = async () => {
    looks += 1
    const now = looks % wellLooksMin === 0 ? await options.findings?.() : undefined
    if (now === undefined) return
    const textOf = new Map(now.findings.flatMap(({ trouble, text }) => (trouble ? [[trouble, text]] : [])))
    const last = before
    before = [...textOf.keys()]
    const begun = await store.begun(now.troubles.map(findingKey))
    await allOf(
      now.troubles.map((trouble) => async () => {
        const text = textOf.get(trouble)
        const sink = /^(?:late|refuses):(.+)$/.exec(trouble)?.[1]
        const about = { trouble, ...(sink === undefined ? {} : { sink }) }
        const key = findingKey(trouble)
        if (text === undefined && !last.includes(trouble) && begun.has(key))
          await troubles.end([key], { kind: 'trouble_over', text: '', ...about })
        if (text !== undefined && last.includes(trouble))
          await troubles.begin(key, troubleMs, { kind: 'trouble', text, ...about })
      }),
    )
  }
  const keptOf = async (open: readonly string[]): Promise<ReadonlySet<string>> => {
    const kept = await options.kept?.(open).catch(() => undefined)
    return new Set(open.filter((_sink, at) => kept === undefined || kept[at] !== undefined))
  }
  /** Where nothing is wrong, a few commands, however many sinks and sources there are. */
  const lookAtAll = async (queues: OperatorTargets['queues']) => {
    const reading = sources()
    // Reported at the end: a source that cannot be read holds up no sink.
    const reports = await reading.catch(() => [])
    const failing = await queues.failingSince(clock.now() - hourMs)
    const ofSources = reports.flatMap(({ status }) => troublesOfSource(status.source))
    const opened = breakers().filter(({ breaker }) => breaker === 'open')
    const open = new Map(opened.map(({ sink, reason = '' }) => [sink, reason]))
    const seen = {
      begun: await store.begun([...queues.sinks.map(outage), ...ofSources]),
      kept: await keptOf([...open.keys()]),
      ...{ failing, open },
    }
    await allOf([
      ...queues.sinks.map((sink) => () => lookAtSink(sink, queues, seen)),
      async () => allOf((await reading).map((each) => () => lookAtSource(each, seen))),
    ])
  }
  const look = async () => {
    const { operators, queues } = active()
    if (operators.length === 0) return
    await allOf([
      lookAtFindings,
      ...troubles.unanswered().map((trouble) => () => troubles.repeat(trouble)),
      () => lookAtAll(queues),
    ])
  }

  return {
    onBreaker({ sink, state, reason }) {
      const { operators, queues } = active()
      if (operators.length === 0) return
      const nowMs = clock.now()
      if (state === 'closed') outages.closed(sink)
      void attempt(async () => {
        // The regular checks send the notice that it is over, once the breaker has stayed closed for a while.
        if (state === 'closed') return outages.noteClosed(sink)
        // First ends the outage before this one, if that is over and its notice was not sent yet.
        await outages.recover(sink, queues).finally(() => outages.open(sink, reason, nowMs))
      })
    },
    onOrphan(orphan) {
      if (active().operators.length === 0) return
      void attempt(() => troubles.begin(orphanTrouble(orphan), orphanMs, orphanNotice(orphan)))
    },
    onNoOrphan(orphan) {
      void attempt(() => troubles.end([orphanTrouble(orphan)], undefined))
    },
    renamed: (from, to) =>
      active().operators.length === 0 ? undefined : toUnsent({ kind: 'source_renamed', from, to }),
    onRules(source, report) {
      if (active().operators.length > 0) void attempt(() => troubles.rules(source, report))
    },
    async run(signal) {
      while (!signal.aborted) {
        await attempt(look)
        await clock.sleep(lookEveryMs, signal).catch(() => {})
      }
    },
  }
}

function troublesOfSource(name: string): [stopped: string, failing: string] {
  return [`source:${name}`, `failing:${name}`]
}

function findingKey(trouble: string): string {
  return `finding:${trouble}`
}

function orphanTrouble({ kind, name }: Pick<OrphanView, 'kind' | 'name'>): string {
  return `orphan-${kind}:${name}`
}

function orphanNotice(orphan: OrphanView): Notice {
  const { kind, name } = orphan
  if (kind === 'source') return { kind: 'source_orphaned', orphan: name }
  const count = orphan.waiting + orphan.sending + orphan.delayed + orphan.dead
  return { kind: 'sink_orphaned', orphan: name, count }
}
