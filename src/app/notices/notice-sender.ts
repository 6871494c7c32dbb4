import { createHash } from 'node:crypto'
import { localSentences } from '../../admin/own-instants.ts'
import { noticeSource, parseRow } from '../../alert/alert.ts'
import { forTargets } from '../../alert/job.ts'
import type { SinkQueues } from '../../delivery/queue/queues.ts'
import type { Clock } from '../../lib/clock.ts'
import { isRedisAway } from '../../store/connection/redis-errors.ts'
import type { NoticeStore } from '../../store/operators/notices.ts'
import { madeAtMs, type UnsentNotice } from '../../store/operators/unsent-notices.ts'
import type { Logger } from '../../telemetry/log.ts'
import { type Notice, noticeRow } from './notices.ts'

interface NoticeSenderOptions {
  /** The config in force. */
  readonly active: () => {
    /** Names of sinks. */
    readonly operators: readonly string[]
    readonly queues: Pick<SinkQueues, 'enqueue'>
    readonly targets: ReadonlyMap<string, readonly (string | undefined)[]>
  }
  readonly store: Pick<NoticeStore, 'unsent' | 'server' | 'remove'>
  readonly log: Logger
}

/**
 * Puts notices that Redis has as unsent into the queues of their receivers. Any replica sends the notices of all: their jobs have
 * fixed ids, so it does not matter who is faster, or was killed half-way. A queue that refuses one does not delay the others.
 */
export function noticeSender({ active, store, log }: NoticeSenderOptions) {
  /** Of unsent notices, those receivers in whose queues this process has put them, at this server. */
  let queued: ReadonlyMap<number, Set<string>> = new Map()
  let server = ''
  const send = async ({ id, sink: subject, row }: UnsentNotice) => {
    const parsed = parseRow(noticeSource, { ...row, id })
    if (!parsed.ok) throw new Error(`a notice does not parse: ${parsed.reason}`)
    const { alert } = parsed
    // An operator may have left the config meanwhile.
    const { operators, queues, targets } = active()
    const receivers = operators.filter((sink) => sink !== subject)
    const jobsOf = (sink: string) => forTargets({ sink, alert, seenAtMs: madeAtMs(id) }, targets.get(sink))
    const done = queued.get(id) ?? new Set()
    await allOf(
      receivers
        .filter((sink) => !done.has(sink))
        .map((sink) => async () => {
          await queues.enqueue(jobsOf(sink))
          done.add(sink)
        }),
    )
    // The next look puts it into the queues of another server.
    if (await store.remove(id, server)) log.info({ notice: alert.kind, operators: receivers }, alert.headline)
  }
  return {
    /** Throws the error of the first queue that refused. */
    async sendUnsent(): Promise<void> {
      const unsent = await store.unsent()
      const present = unsent.length === 0 ? server : await store.server()
      const known = present === server ? queued : new Map<number, Set<string>>()
      server = present
      queued = new Map(unsent.map(({ id }) => [id, known.get(id) ?? new Set()]))
      try {
        await allOf(unsent.map((notice) => () => send(notice)))
      } catch (thrown) {
        // Another server may have taken over, which has the notices and not yet the last jobs.
        if (isRedisAway(thrown)) queued = new Map()
        throw thrown
      }
    },
  }
}

/**
 * Makes notices with ids that are unique in this process, also those of one millisecond; over replicas they seldom are the same. Their
 * times are on the clock of `timeZone`.
 */
export function noticeMaker(
  clock: Pick<Clock, 'now'>,
  timeZone: () => string,
): (notice: Notice) => UnsentNotice {
  let lastId = 0
  return (notice) => {
    const nowMs = clock.now()
    lastId = Math.max(lastId + 1, nowMs * 1_000 + thousandthOf(notice))
    const sink = 'sink' in notice ? { sink: notice.sink } : {}
    const row = noticeRow(notice, nowMs, (text) => localSentences(text, timeZone()))
    return { v: 1, id: lastId, ...sink, row }
  }
}

/** A number below 1,000; two notices seldom get the same. */
function thousandthOf(notice: Notice): number {
  return createHash('sha256').update(JSON.stringify(notice)).digest().readUInt32BE() % 1_000
}

/** One that fails holds up no other, unless Redis is away for all of them. */
export async function allOf(works: readonly (() => Promise<void>)[]): Promise<void> {
  const failed: unknown[] = []
  for (const work of works)
    try {
      await work()
    } catch (thrown) {
      if (isRedisAway(thrown)) throw thrown
      failed.push(thrown)
    }
  if (failed.length > 0) throw failed[0]
}
