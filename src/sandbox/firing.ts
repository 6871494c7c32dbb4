import type { Clock } from '../lib/clock.ts'
import { createRandom } from './random.ts'

interface FiringOptions {
  readonly clock: Clock
  readonly spacing: 'poisson' | 'even'
  readonly seed: number
  /** Between two alerts, on average. */
  readonly gapMs: number
  readonly fire: () => void
}

/** Fires until `signal` aborts. Due times are added up, so that a late timer does not lower the rate. */
export function fireUntilAborted(pace: FiringOptions, signal: AbortSignal): void {
  void loop(pace, signal).catch((thrown: unknown) => {
    if (!signal.aborted) throw thrown
  })
}

async function loop(
  { clock, spacing, seed, gapMs, fire }: FiringOptions,
  signal: AbortSignal,
): Promise<void> {
  const random = createRandom(seed + 3)
  let dueMs = clock.monotonicMs()
  while (!signal.aborted) {
    dueMs += spacing === 'even' ? gapMs : random.exponential(gapMs)
    await clock.sleep(dueMs - clock.monotonicMs(), signal)
    if (!signal.aborted) fire()
  }
}
