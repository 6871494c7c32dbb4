import type { Mark } from '../feed/walk.ts'
import { looksForeign, witnessPages } from '../feed/walk-strangers.ts'
import type { Reading } from './intake.ts'
import { orStop, PollStop, readPage } from './page-steps.ts'
import type { PollDeps } from './poll-types.ts'
import type { Tally } from './tally.ts'

/**
 * Whether this page proves that the feed is the one this source's memory is of. A page that looks foreign is not taken
 * until another one speaks for it; without one the poll stops as `strangers_feed`. Nothing of the stop is stored: the
 * next poll looks again, and goes on by itself when the token is put right.
 */
export async function isOurs(
  deps: PollDeps,
  tally: Tally,
  { page, looked, verdicts }: Reading,
  isHead: boolean,
): Promise<boolean> {
  // Beneath the head, rows of an open stretch may be rows that this very poll took.
  const isKnown = (mark: Mark) => (isHead ? mark !== 'new' : mark === 'covered')
  if (looked.marks.some(isKnown)) return true
  const firedAtMs = verdicts.map((verdict) => verdict.firedAtMs)
  if (!looksForeign(looked.marks, firedAtMs, looked.facts)) return false
  for (const number of witnessPages(page, looked.facts)) {
    const witness = await readPage(deps, tally, number, 'walk')
    const keys = witness.rows.map(({ key }) => key)
    const { marks } = await orStop('state_failed', () => deps.state.look(keys))
    if (marks.some(isKnown)) return true
  }
  throw new PollStop('strangers_feed')
}
