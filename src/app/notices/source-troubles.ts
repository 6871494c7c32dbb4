import type { Clock } from '../../lib/clock.ts'
import { formatDuration } from '../../lib/duration.ts'
import { failingMsMax, lastingFailure, overdueMs } from '../../poller/health.ts'
import type { NoticeStore } from '../../store/operators/notices.ts'
import type { UnsentNotice } from '../../store/operators/unsent-notices.ts'
import type { PollerStatus } from '../../store/source/source-status.ts'
import type { QuarantineCounts } from '../../store/walk/quarantine.ts'
import type { Notice } from './notices.ts'
import { troubleMs } from './outages.ts'
import type { Troubles } from './troubles.ts'

/** What people are told of a source: that it needs a person, that no poll of it succeeds, that rows could not be read. */
interface SourceTroubles {
  /** `begun`: the troubles that people were notified of. */
  look(report: SourceReport, begun: ReadonlyMap<string, number>): Promise<void>
}

export interface SourceReport {
  readonly status: PollerStatus
  /** undefined when it cannot be read now. */
  readonly quarantine: QuarantineCounts | undefined
}

interface SourceTroublesOptions {
  readonly store: Pick<NoticeStore, 'at' | 'begin'>
  readonly troubles: Troubles
  readonly toUnsent: (notice: Notice) => UnsentNotice
  readonly clock: Clock
}

/** An instant of another process, by the clock of this one, varies by less. */
const clockJitterMs = 500
/** The next notice of rows that could not be read is sent after this time. */
const rowsAgainMs = 3_600_000

export function createSourceTroubles(options: SourceTroublesOptions): SourceTroubles {
  const { store, troubles, toUnsent, clock } = options
  /** Sources without a poll though one is due, and since when that is seen, by the monotonic clock. */
  const unpolledSources = new Map<string, { readonly dueAtMs: number | null; readonly sinceMs: number }>()
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
  const lookAtRows = async (sourceName: string, { ever, quarantined }: QuarantineCounts) => {
    const what = `rows:${sourceName}`
    if (quarantined === 0) return
    const before = (await store.at(what)) ?? 0
    // Rows that were dropped or read since are not counted; after a loss of Redis the count starts at 0.
    const count = Math.min(quarantined, ever < before ? ever : ever - before)
    if (count === 0) return
    const notice = toUnsent({ kind: 'rows_set_aside', sourceName, count })
    await store.begin(what, { againMs: rowsAgainMs, notice, moved: { what, to: ever } })
  }
  return {
    async look({ status, quarantine }, begun) {
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
    },
  }
}

export function troublesOfSource(name: string): [stopped: string, failing: string] {
  return [`source:${name}`, `failing:${name}`]
}
