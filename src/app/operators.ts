import type { SinkQueues } from '../delivery/queues.ts'
import type { BreakerNews } from '../delivery/sender.ts'
import type { Clock } from '../lib/clock.ts'
import { toError } from '../lib/errors.ts'
import type { NoticeStore } from '../store/notices.ts'
import type { PollerStatus } from '../store/source-status.ts'
import type { Logger } from '../telemetry/log.ts'
import { type Notice, noticeAlert } from './notices.ts'

/**
 * Tells the people behind `operators:` when a sink fails or recovers, when alerts were given up on (one notice a sink
 * and hour, with the count), and when a source needs a person. A sink in trouble is never told of itself. Telling is best
 * effort: when Redis is away, log and status page say the same.
 */
export interface Operators {
  onBreaker(news: BreakerNews): void
  /** Looks at dead letters and sources until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

interface Told {
  /** Names of sinks. */
  readonly operators: readonly string[]
  readonly queues: Pick<SinkQueues, 'sinks' | 'enqueue' | 'failedSince'>
  readonly targetsOf: (sink: string) => readonly (string | undefined)[]
}

export interface OperatorsOptions {
  /** As the config in force has it. */
  readonly inForce: () => Told
  readonly sources: () => Promise<readonly PollerStatus[]>
  readonly store: NoticeStore
  readonly clock: Clock
  readonly log: Logger
  readonly lookEveryMs?: number
}

const hourMs = 3_600_000
/** A breaker that is open for longer is told of again. */
const troubleMs = 24 * hourMs

export function createOperators(options: OperatorsOptions): Operators {
  const { inForce, sources, store, clock, log, lookEveryMs = 5_000 } = options

  let lastId = 0
  const tell = async (notice: Notice) => {
    const { operators, queues, targetsOf } = inForce()
    // Two troubles may begin in the same millisecond.
    lastId = Math.max(lastId + 1, clock.now())
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
  const attempt = async (work: Promise<void>) => {
    await work.catch((thrown: unknown) => log.warn({ err: toError(thrown) }, 'operators.not_told'))
  }

  const lookAtDead = async (sink: string, queues: Told['queues']) => {
    const nowMs = clock.now()
    if ((await queues.failedSince(sink, nowMs - hourMs)) === 0) return
    if (!(await store.begin(`dead:${sink}`, nowMs, hourMs))) return
    const sinceMs = (await store.moveDead(sink, nowMs)) ?? nowMs - hourMs
    const count = await queues.failedSince(sink, sinceMs + 1)
    if (count > 0) await tell({ kind: 'dead_letters', sink, count, sinceMs })
  }
  const lookAtSource = async ({ source, state, reason }: PollerStatus) => {
    const trouble = `source:${source}`
    if (state === 'stopped') {
      if (await store.begin(trouble, clock.now(), troubleMs))
        await tell({ kind: 'source_stopped', sourceName: source, reason })
    } else if (state === 'waiting' && (await store.end(trouble)))
      await tell({ kind: 'source_resumed', sourceName: source, reason })
  }
  const look = async () => {
    const { operators, queues } = inForce()
    if (operators.length === 0) return
    for (const sink of queues.sinks) await lookAtDead(sink, queues)
    for (const status of await sources()) await lookAtSource(status)
  }

  return {
    onBreaker({ sink, state, reason }) {
      if (inForce().operators.length === 0) return
      const trouble = `breaker:${sink}`
      const told =
        state === 'open'
          ? store
              .begin(trouble, clock.now(), troubleMs)
              .then((first) => (first ? tell({ kind: 'sink_down', sink, reason }) : undefined))
          : store.end(trouble).then((first) => (first ? tell({ kind: 'sink_up', sink, reason }) : undefined))
      void attempt(told)
    },
    async run(signal) {
      while (!signal.aborted) {
        await attempt(look())
        await clock.sleep(lookEveryMs, signal).catch(() => {})
      }
    },
  }
}
