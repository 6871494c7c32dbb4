import { createHash } from 'node:crypto'
import type { OrphanView } from '../admin/orphan-view.ts'
import type { SinkQueues } from '../delivery/queues.ts'
import type { BreakerChange, LaneState } from '../delivery/sender.ts'
import type { Clock } from '../lib/clock.ts'
import { toError } from '../lib/errors.ts'
import { lastingFailure } from '../poller/status.ts'
import type { NoticeStore } from '../store/notices.ts'
import type { QuarantineCounts } from '../store/quarantine.ts'
import type { PollerStatus } from '../store/source-status.ts'
import type { Logger } from '../telemetry/log.ts'
import { type Notice, noticeAlert } from './notices.ts'

/**
 * Tells the people behind `operators:` when a sink fails, when it has been well again for a while, when alerts were given up on (one notice a sink
 * and hour, with the count), when rows could not be read (the same for a source), when a source needs a person, and when
 * a name leaves the config with something left. A sink in trouble is never told of itself. Telling is best effort: when
 * Redis is away, log and status page say the same. What people know stands in Redis, so that a restart neither repeats it
 * nor forgets to tell its end.
 */
export interface Operators {
  onBreaker(news: BreakerChange): void
  /** Something is left of a name that is not in the config: told once, until it is gone or in the config again. */
  onOrphan(orphan: OrphanView): void
  onNoOrphan(orphan: Pick<OrphanView, 'kind' | 'name'>): void
  onRenamed(from: string, to: string): void
  /** Looks at sinks and sources until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

interface OperatorTargets {
  /** Names of sinks. */
  readonly operators: readonly string[]
  readonly queues: Pick<SinkQueues, 'sinks' | 'enqueue' | 'failedSince' | 'completedSince'>
  readonly targetsOf: (sink: string) => readonly (string | undefined)[]
}

export interface SourceReport {
  readonly status: PollerStatus
  /** undefined when it cannot be had now. */
  readonly quarantine: QuarantineCounts | undefined
}

export interface OperatorsOptions {
  /** As the config in force has it. */
  readonly active: () => OperatorTargets
  readonly sources: () => Promise<readonly SourceReport[]>
  /** Of this process. */
  readonly breakers: () => readonly Pick<LaneState, 'sink' | 'breaker' | 'reason'>[]
  readonly store: NoticeStore
  readonly clock: Clock
  readonly log: Logger
  readonly lookEveryMs?: number | undefined
}

const hourMs = 3_600_000
/** A trouble that lasts longer is told of again. */
const troubleMs = 24 * hourMs

/** People who left an orphan where it is need not be told of it again for long. */
const orphanMs = 30 * 24 * hourMs

/** A sink counts as well after so many looks, a minute, in which no replica's breaker was open. */
const wellLooksMin = 12

export function createOperators(options: OperatorsOptions): Operators {
  const { active, sources, breakers, store, clock, log, lookEveryMs = 5_000 } = options
  const sendNotice = noticeSender(options)
  let lastWork: Promise<void> = Promise.resolve()
  /** One after the other, so that an end is never told before its beginning; best effort. */
  const attempt = (work: () => Promise<void>) => {
    lastWork = lastWork
      .then(work)
      .catch((thrown: unknown) => log.warn({ err: toError(thrown) }, 'operators.not_told'))
    return lastWork
  }

  const lookAtDead = async (sink: string, queues: OperatorTargets['queues']) => {
    const nowMs = clock.now()
    if ((await queues.failedSince(sink, nowMs - hourMs)) === 0) return
    if (!(await store.begin(`dead:${sink}`, nowMs, hourMs))) return
    const sinceMs = (await store.move(sink, nowMs)) ?? nowMs - hourMs
    const count = await queues.failedSince(sink, sinceMs + 1)
    if (count > 0) await sendNotice({ kind: 'dead_letters', sink, count, sinceMs })
  }
  const onOpen = async (sink: string, reason: string, atMs: number) => {
    await store.move(`open:${sink}`, atMs)
    if (await store.begin(`breaker:${sink}`, atMs, troubleMs))
      await sendNotice({ kind: 'sink_down', sink, reason })
  }
  /**
   * Over is an outage when no breaker was open for a while, also none of other replicas, and one has closed or a delivery
   * went well since: what comes and goes, or is seen by one replica of several, is told of once. A process that ends in
   * an outage closes no breaker.
   */
  const recover = async (sink: string, queues: OperatorTargets['queues']) => {
    const sinceMs = await store.since(`breaker:${sink}`)
    if (sinceMs === undefined) return
    const openMs = Math.max(sinceMs, (await store.at(`open:${sink}`)) ?? 0)
    if (clock.now() - openMs < wellLooksMin * lookEveryMs) return
    const hasClosed = ((await store.at(`closed:${sink}`)) ?? 0) >= openMs
    if (!hasClosed && (await queues.completedSince(sink, openMs + 1)) === 0) return
    if (await store.end(`breaker:${sink}`)) await sendNotice({ kind: 'sink_up', sink, reason: '' })
  }
  const lookAtSink = async (sink: string, queues: OperatorTargets['queues']) => {
    const nowMs = clock.now()
    const open = breakers().find((each) => each.sink === sink && each.breaker === 'open')
    await (open ? onOpen(sink, open.reason ?? '', nowMs) : recover(sink, queues))
    await lookAtDead(sink, queues)
  }
  const lookAtSource = async ({ status, quarantine }: SourceReport) => {
    const { source: sourceName, state, reason, failingSinceMs } = status
    const [stopped, failing] = [`source:${sourceName}`, `failing:${sourceName}`]
    const failure = lastingFailure(status)
    if (state === 'stopped') {
      if (await store.begin(stopped, clock.now(), troubleMs))
        await sendNotice({ kind: 'source_stopped', sourceName, reason })
    } else if (failure !== undefined) {
      if (await store.begin(failing, clock.now(), troubleMs))
        await sendNotice({ kind: 'source_failing', sourceName, reason: failure })
    } else if (state === 'waiting' && failingSinceMs === null) {
      const ended = [await store.end(stopped), await store.end(failing)]
      if (ended.includes(true)) await sendNotice({ kind: 'source_resumed', sourceName, reason })
    }
    if (quarantine !== undefined) await lookAtRows(sourceName, quarantine)
  }
  const lookAtRows = async (sourceName: string, { ever, setAside }: QuarantineCounts) => {
    const what = `rows:${sourceName}`
    if (setAside === 0 || !(await store.begin(what, clock.now(), hourMs))) return
    const before = (await store.move(what, ever)) ?? 0
    // What was dropped or read since is nobody's business any more; after a loss of Redis the count begins anew.
    const count = Math.min(setAside, ever < before ? ever : ever - before)
    if (count > 0) await sendNotice({ kind: 'rows_set_aside', sourceName, count })
  }
  const look = async () => {
    const { operators, queues } = active()
    if (operators.length === 0) return
    for (const sink of queues.sinks) await lookAtSink(sink, queues)
    for (const each of await sources()) await lookAtSource(each)
  }

  return {
    onBreaker({ sink, state, reason }) {
      const { operators, queues } = active()
      if (operators.length === 0) return
      const nowMs = clock.now()
      void attempt(async () => {
        // That it is over is told by the looks, once it has stayed so.
        if (state === 'closed') return void (await store.move(`closed:${sink}`, nowMs))
        // Of the outage before, when nobody could tell yet that it was over.
        await recover(sink, queues)
        await onOpen(sink, reason, nowMs)
      })
    },
    onOrphan(orphan) {
      if (active().operators.length === 0) return
      void attempt(async () => {
        if (await store.begin(orphanTrouble(orphan), clock.now(), orphanMs))
          await sendNotice(orphanNotice(orphan))
      })
    },
    onNoOrphan(orphan) {
      void attempt(async () => void (await store.end(orphanTrouble(orphan))))
    },
    onRenamed(from, to) {
      if (active().operators.length > 0) void attempt(() => sendNotice({ kind: 'source_renamed', from, to }))
    },
    async run(signal) {
      while (!signal.aborted) {
        await attempt(look)
        await clock.sleep(lookEveryMs, signal).catch(() => {})
      }
    },
  }
}

function noticeSender({ active, clock, log }: OperatorsOptions): (notice: Notice) => Promise<void> {
  let lastId = 0
  return async (notice) => {
    const { operators, queues, targetsOf } = active()
    // Two troubles may begin in the same millisecond, also at two replicas.
    lastId = Math.max(lastId + 1, clock.now() * 1_000 + thousandthOf(notice))
    const alert = noticeAlert(notice, lastId, clock.now())
    const subject = 'sink' in notice ? notice.sink : undefined
    const jobs = operators
      .filter((sink) => sink !== subject)
      .flatMap((sink) =>
        targetsOf(sink).map((target) => ({
          sink,
          alert,
          seenAtMs: clock.now(),
          ...(target === undefined ? {} : { target }),
        })),
      )
    log.info({ notice: notice.kind, operators: jobs.map(({ sink }) => sink) }, alert.headline)
    await queues.enqueue(jobs)
  }
}

/** A number below 1,000 that two notices seldom share. */
function thousandthOf(notice: Notice): number {
  return createHash('sha256').update(JSON.stringify(notice)).digest().readUInt32BE() % 1_000
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
