import type { PollResult } from '../intake/poll-types.ts'
import type { PollerStatus } from '../store/source/source-status.ts'
import type { Logger } from '../telemetry/log.ts'
import type { CallTally } from './reader.ts'

/** The canonical line of one poll. */
export function logPoll(
  log: Logger,
  poll: {
    source: string
    result: PollResult
    tally: CallTally
    startMs: number
    endMs: number
    status: PollerStatus
  },
): void {
  const { source, result, tally, startMs, endMs, status } = poll
  const fired = result.fired.filter(({ passedOver }) => !passedOver)
  const lagMs = fired.length === 0 ? undefined : endMs - Math.min(...fired.map(({ firedAtMs }) => firedAtMs))
  // Also where the first page went well and one beneath it did not: that is why a source stays behind.
  const failed = tally.calls > 0 && (!result.ok || result.reason === 'failed')
  log[failed ? 'warn' : tally.calls > 0 ? 'info' : 'debug'](
    {
      source,
      reason: result.reason,
      ...(failed && status.lastError ? { error: status.lastError.message } : {}),
      pages: result.pages,
      calls: tally.calls,
      new: result.newAlerts,
      duplicates: result.duplicates,
      ...(result.passedOver > 0 ? { passedOver: result.passedOver } : {}),
      ...(result.quarantined > 0 ? { quarantined: result.quarantined } : {}),
      unitsUsed: status.unitsUsed,
      unitsLeft: Math.max(0, status.unitsPerDay - status.unitsUsed),
      durationMs: endMs - startMs,
      behind: result.behind,
      nextAt: status.nextPollAtMs === null ? null : new Date(status.nextPollAtMs).toISOString(),
      nextReason: status.nextReason,
      ...(lagMs === undefined ? {} : { lagMs }),
    },
    'poll.done',
  )
}
