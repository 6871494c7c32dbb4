import { type TestContext, it as vitestIt } from 'vitest'
import { sideBySide } from './finished.ts'

/** More would take time from each other, where cores are slow. */
const lanes: Promise<unknown>[] = Array.from({ length: 3 }, () => Promise.resolve())
let begun = 0
/** The limit ends a test that runs away; while another is in its lane, a test waits. */
const usualTimeoutMs = 120_000

/** Runs a body once the one that is before it in its lane has ended. */
function inLane(body: () => Promise<void>): () => Promise<void> {
  return () => {
    const lane = begun++ % lanes.length
    const turn = (lanes[lane] ?? Promise.resolve()).then(body)
    lanes[lane] = turn.catch(() => {})
    return turn
  }
}

/**
 * In the place of Vitest's `it`, in a file whose tests wait for most of their time and share nothing but a Redis, each with a prefix of
 * its own: three run side by side. Those that look at how late something is run alone, by Vitest's `test`.
 */
export const it = Object.assign(
  (name: string, body: () => Promise<void>, timeout = usualTimeoutMs) =>
    vitestIt.concurrent(name, { timeout }, sideBySide(inLane(body))),
  {
    for:
      <const Case>(cases: readonly Case[]) =>
      (name: string, body: (given: Case) => Promise<void>, timeout = usualTimeoutMs) =>
        vitestIt.concurrent.for(cases)(name, { timeout }, (given, context: TestContext) =>
          sideBySide(inLane(() => body(given)))(context),
        ),
  },
)
