import { burstSeconds, dayLevel, type Intensity, lullLasts, recentLevel, recentSeconds } from './intensity.ts'

/** The expectation as numbers that the planner can use without looking back; rates are in alerts a second. */
export interface Outlook {
  /** What the profile's rate is multiplied by today. */
  readonly level: number
  /** What the last minutes add to `level`, fading. */
  readonly swing: number
  /** Weighted bursts at the time of the outlook. */
  readonly bursts: readonly number[]
  /** The probability that a lull is on. */
  readonly lull: number
}

export function outlookAt(intensity: Intensity, atMs: number): Outlook {
  const { trust, bursts, lullOdds } = intensity
  const total = trust.reduce((sum, voice) => sum + voice, 0)
  const share = (voice: number) => (trust[voice] ?? 0) / total
  const seconds = Math.max(0, atMs - intensity.atMs) / 1_000
  const level = dayLevel(intensity)
  return {
    level: (share(0) + share(1)) * level,
    swing: share(1) * (recentLevel(intensity) - level) * Math.exp(-seconds / recentSeconds),
    bursts: bursts.map((burst, k) => share(k + 2) * burst * Math.exp(-seconds / (burstSeconds[k] ?? 1))),
    lull: (lullOdds / (1 + lullOdds)) * lullLasts(seconds),
  }
}

/** Expected alerts a second, `seconds` after the outlook, where the profile says `base`. */
export function expectedRate({ level, swing, bursts, lull }: Outlook, base: number, seconds: number): number {
  const open = 1 - lull * lullLasts(seconds)
  let rate = base * open * Math.max(0, level + swing * Math.exp(-seconds / recentSeconds))
  for (const [k, burst] of bursts.entries()) rate += burst * Math.exp(-seconds / (burstSeconds[k] ?? 1))
  return rate
}
