import type { Clock } from '../lib/clock.ts'

/** The bounds of one call of a long operation. */
interface StepLimits {
  /** Records that are looked at, at most. */
  readonly limit?: number | undefined
  /** How long the call may take, give or take the commands that are under way. */
  readonly portionMs?: number | undefined
  readonly clock: Clock
}

/** What one call looks at when it does not say how much. */
const limitDefault = 1_000
const portionMsDefault = 4_000

/**
 * Repeats `step` until all is done (undefined) or a bound is reached. After something was done, an error is not thrown:
 * the caller gets what was done, and its next call begins at the same step and throws if the error is still there.
 */
export async function stepOn<P>(
  begun: P,
  { limit = limitDefault, portionMs = portionMsDefault, clock }: StepLimits,
  tally: { readonly looked: number; readonly handled: number; readonly gone: number },
  step: (progress: P, left: number) => Promise<P | undefined>,
): Promise<P | undefined> {
  const endMs = clock.monotonicMs() + portionMs
  let progress: P | undefined = begun
  try {
    while (progress !== undefined && tally.looked < limit && clock.monotonicMs() < endMs)
      progress = await step(progress, limit - tally.looked)
  } catch (error) {
    if (tally.handled + tally.gone === 0) throw error
  }
  return progress
}
