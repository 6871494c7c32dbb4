import type { OrphanView } from '../../admin/views/orphan-view.ts'
import type { SinkQueues } from '../../delivery/queue/queues.ts'
import type { BreakerChange, LaneState } from '../../delivery/sender.ts'
import type { Clock } from '../../lib/clock.ts'
import { toError } from '../../lib/errors.ts'
import type { NoticeStore } from '../../store/operators/notices.ts'
import type { UnsentNotice } from '../../store/operators/unsent-notices.ts'
import type { Logger } from '../../telemetry/log.ts'
import { createFindingLook, type FindingsNow } from './finding-troubles.ts'
import { allOf, noticeMaker, noticeSender } from './notice-sender.ts'
import type { Notice } from './notices.ts'
import { createOutages, outage } from './outages.ts'
import type { RulesReport } from './rule-notices.ts'
import { createSourceTroubles, type SourceReport, troublesOfSource } from './source-troubles.ts'
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

interface OperatorsOptions {
  /** Of the config in force. */
  readonly active: () => OperatorTargets
  readonly sources: () => Promise<readonly SourceReport[]>
  /** What the status page says is wrong, with every trouble that may be among it; undefined when it cannot be read now. */
  readonly findings: () => Promise<FindingsNow | undefined>
  /** Of this process. */
  readonly breakers: () => readonly Pick<LaneState, 'sink' | 'breaker' | 'reason'>[]
  /** Which of these sinks are down by what all replicas share, in their order. */
  readonly kept: (sinks: readonly string[]) => Promise<readonly unknown[]>
  readonly store: NoticeStore
  readonly clock: Clock
  readonly log: Logger
  readonly lookEveryMs?: number | undefined
}

const hourMs = 3_600_000
/** People who leave an orphan where it is get the next notice of it only after this time. */
const orphanMs = 30 * 24 * hourMs

/** Checks of a minute: no replica's breaker was open in so many when a sink counts as working again; findings are read once in them. */
const minuteLooks = 6

export function createOperators(options: OperatorsOptions): Operators {
  const { active, sources, breakers, store, clock, log, lookEveryMs = 10_000 } = options
  const { sendUnsent } = noticeSender(options)
  const toUnsent = noticeMaker(clock, () => active().timeZone)
  const troubles = createTroubles({ store, toUnsent })
  const outages = createOutages({ store, troubles, clock, quietMs: minuteLooks * lookEveryMs })
  const ofSource = createSourceTroubles({ store, troubles, toUnsent, clock })
  const lookAtFindings = createFindingLook({
    ...{ store, troubles, findings: options.findings },
    acknowledgedSince: (sink, sinceMs) => active().queues.completedSince(sink, sinceMs),
  })
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
  const keptOf = async (open: readonly string[]): Promise<ReadonlySet<string>> => {
    const kept = await options.kept(open).catch(() => undefined)
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
      failing,
      open,
    }
    await allOf([
      ...queues.sinks.map((sink) => () => lookAtSink(sink, queues, seen)),
      async () => allOf((await reading).map((each) => () => ofSource.look(each, seen.begun))),
    ])
  }
  let looks = 0
  const look = async () => {
    const { operators, queues } = active()
    if (operators.length === 0) return
    looks += 1
    await allOf([
      ...(looks % minuteLooks === 0 ? [lookAtFindings] : []),
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

function orphanTrouble({ kind, name }: Pick<OrphanView, 'kind' | 'name'>): string {
  return `orphan-${kind}:${name}`
}

function orphanNotice(orphan: OrphanView): Notice {
  const { kind, name } = orphan
  if (kind === 'source') return { kind: 'source_orphaned', orphan: name }
  const count = orphan.waiting + orphan.sending + orphan.delayed + orphan.dead
  return { kind: 'sink_orphaned', orphan: name, count }
}
