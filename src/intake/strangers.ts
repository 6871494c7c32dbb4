import { firstSearchTo, looksForeign, witnessPages } from '../walk/strangers.ts'
import type { Mark } from '../walk/walk.ts'
import type { Reading } from './intake.ts'
import { orStop, PollStop, readPage } from './page-steps.ts'
import type { PollDeps, PollMemory } from './poll-types.ts'
import type { Tally } from './tally.ts'

/**
 * Whether this page proves that the feed is the one this source's memory is of. A page that looks foreign is not taken
 * until another one speaks for it; without one the poll stops as `strangers_feed`. Nothing of the stop is stored: the
 * next poll looks again, at other pages, and goes on by itself when the token is put right.
 */
export async function isOurs(
  deps: PollDeps,
  tally: Tally,
  { page, looked, verdicts }: Reading,
  { isHead, memory }: { readonly isHead: boolean; readonly memory: PollMemory },
): Promise<boolean> {
  // Beneath the head, rows of an open stretch may be rows that this very poll took.
  const isKnown = (mark: Mark) => (isHead ? mark !== 'new' : mark === 'covered')
  if (looked.marks.some(isKnown)) return true
  const firedAtMs = verdicts.map((verdict) => verdict.firedAtMs)
  if (!looksForeign(looked.marks, firedAtMs, looked.facts, deps.clock.now())) return false
  const pages = witnessPages(page, looked.facts, memory.searchedTo)
  for (const number of pages) {
    const witness = await readPage(deps, tally, number, 'walk')
    const keys = witness.rows.map(({ key }) => key)
    const { marks } = await orStop('state_failed', () => deps.state.look(keys))
    if (!marks.some(isKnown)) continue
    memory.searchedTo = 0
    return true
  }
  // From the top again once the end was reached: the feed moves meanwhile.
  memory.searchedTo = pages.length === 0 ? 0 : memory.searchedTo === 0 ? firstSearchTo : (pages.at(-1) ?? 0)
  throw new PollStop('strangers_feed')
}
