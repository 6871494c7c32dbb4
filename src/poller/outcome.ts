import { FeedError } from '../feed/errors.ts'
import type { PollResult } from '../intake/poll-types.ts'
import { toError } from '../lib/errors.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { redisErrorText } from '../store/redis.ts'
import type { PollerStatus } from '../store/source-status.ts'
import type { PageTally } from './reader.ts'

/** What follows from one poll: whether it failed, whether a person is needed, what the schedule learns of it. */

/** What went wrong, also where the first page was safe. Refusals, a 429 and our own shutdown are no failure. */
export function failureOf(result: PollResult, tally: PageTally): Error | undefined {
  const error = result.error === undefined ? tally.feedError : toError(result.error)
  if (error instanceof FeedError && (error.code === 'aborted' || error.code === 'rate_limited'))
    return undefined
  return error
}

export function describeFailure(error: Error, atMs: number): NonNullable<PollerStatus['lastError']> {
  const code = 'code' in error ? String(error.code) : error.name
  return { atMs, code, message: redisErrorText(error) }
}

/** Why a person is needed, or undefined. */
export function stopReason(result: PollResult, { feedError }: PageTally): string | undefined {
  if (result.stopped === 'strangers_feed') {
    return 'the token shows another feed than the one that this source remembers'
  }
  return feedError && needsPerson(feedError.code) ? feedError.message : undefined
}

/** Whether a person must mend what the API refuses with this code: nothing that is tried again helps. */
export function needsPerson(code: string): boolean {
  return ['unauthenticated', 'scope_required', 'plan_required'].includes(code)
}

/** A poll that made no call, or that a shutdown broke off, tells nothing about the feed. */
export function teach(
  schedule: Schedule,
  poll: { result: PollResult; tally: PageTally; startMs: number; endMs: number },
): void {
  const { result, tally, startMs, endMs } = poll
  if (tally.calls === 0 || tally.feedError?.code === 'aborted') return
  const { fired, ok, pages, reason } = result
  // Pages that the budget cannot pay for today are no reason to hurry.
  const behind = result.behind && reason !== 'refused_budget'
  const times = (passedOver: boolean) =>
    fired.filter((each) => each.passedOver === passedOver).map(({ firedAtMs }) => firedAtMs)
  // A failed call may have taken its whole timeout: the pause before the next begins at its end.
  schedule.observe({ atMs: ok ? startMs : endMs, ok, firedAtMs: times(false), pages, behind })
  const history = times(true)
  if (history.length > 0) schedule.learnHistory(history)
}
