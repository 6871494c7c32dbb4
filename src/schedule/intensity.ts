/**
 * How likely alerts are right now: the profile at the level of today, the profile at the level of the last minutes,
 * and three memories of bursts, each trusted as far as it foretold the alerts that came; and a lull, where alerts stay
 * away that long that trading must have stopped.
 */
export interface Intensity {
  /** Alerts that each voice foretold, fading: today's level, the last minutes' level, three memories of bursts. */
  readonly trust: number[]
  /** Bursts as alerts a second at `atMs`, one a memory. */
  readonly bursts: number[]
  /** The odds that nothing comes because nothing can. */
  lullOdds: number
  /** When the last poll was taken in; 0 before the first. */
  atMs: number
  readonly today: Tally
  readonly recent: Tally
}

/** Alerts seen against alerts that the profile expected. */
export interface Tally {
  seen: number
  expected: number
}

/** Seconds until a burst's memory has faded to a third. */
export const burstSeconds = [30, 180, 1_200] as const
export const recentSeconds = 1_200
const youngTrust = [30, 3, 2, 5, 2]
const trustKept = 0.8
/** What is remembered of trust, in alerts: a storm of thousands must not be believed in for weeks. */
const trustMax = 450
/** One poll's alerts count for no more than this many. */
const creditMax = 3
/** Expected alerts that a new day's level starts from, and the last minutes' level leans on. */
const dayCaution = 3
const recentCaution = 2
/** How often trading stops of itself, how long it then does, and the most that one silence may prove. */
const lullEverySeconds = 50_000
const lullSeconds = 2_400
const proofMax = 30
/** How much of a burst's offspring is kept out of the profile: all of it would let a wrong profile never mend. */
const declustering = 0.5

export function emptyIntensity(): Intensity {
  const tally = () => ({ seen: 0, expected: 0 })
  return { trust: [...youngTrust], bursts: [0, 0, 0], lullOdds: 0, atMs: 0, today: tally(), recent: tally() }
}

/** A new day starts level, and what was trusted lately is weighed against what is usual. */
export function startDay({ trust, today }: Intensity): void {
  for (const [voice, young] of youngTrust.entries())
    trust[voice] = trustKept * (trust[voice] ?? 0) + (1 - trustKept) * young
  today.seen = 0
  today.expected = 0
}

/**
 * Takes in what a poll at `atMs` found; `expected` is what the profile expected since the last one. The voices are
 * judged by what they knew at the last poll: alerts of one poll cannot foretell each other, for no poll could have come
 * in between.
 */
export function noteArrivals(
  intensity: Intensity,
  atMs: number,
  firedAtMs: readonly number[],
  baseAt: (atMs: number) => number,
  expected: number,
): void {
  const { today, recent, bursts } = intensity
  const credit = Math.min(1, creditMax / Math.max(1, firedAtMs.length))
  for (const at of firedAtMs) judge(intensity, baseAt(at), Math.max(0, at - intensity.atMs) / 1_000, credit)
  noteSilence(intensity, atMs, firedAtMs, expected)
  const seconds = Math.max(0, atMs - intensity.atMs) / 1_000
  today.seen += firedAtMs.length
  today.expected += expected
  const kept = Math.exp(-seconds / recentSeconds)
  recent.seen = recent.seen * kept + firedAtMs.length
  recent.expected = recent.expected * kept + expected
  for (const [k, memory] of burstSeconds.entries()) {
    let burst = (bursts[k] ?? 0) * Math.exp(-seconds / memory)
    for (const at of firedAtMs) burst += Math.exp(-Math.max(0, atMs - at) / 1_000 / memory) / memory
    bursts[k] = burst
  }
  intensity.atMs = atMs
}

/** For alerts of one poll, oldest first: how much of each the profile is to learn, the rest being a burst's offspring. */
export function ownShares(
  intensity: Intensity,
  firedAtMs: readonly number[],
  baseAt: (atMs: number) => number,
): number[] {
  const { trust, today } = intensity
  const bursts = [...intensity.bursts]
  let fromMs = intensity.atMs
  return firedAtMs.map((at) => {
    const seconds = Math.max(0, at - fromMs) / 1_000
    fromMs = Math.max(fromMs, at)
    let burst = 0
    for (const [k, memory] of burstSeconds.entries()) {
      const left = (bursts[k] ?? 0) * Math.exp(-seconds / memory)
      burst += (trust[k + 2] ?? 0) * left
      bursts[k] = left + 1 / memory
    }
    const own = ((trust[0] ?? 0) + (trust[1] ?? 0)) * baseAt(at) * levelOf(today, dayCaution)
    return own > 0 ? 1 - (declustering * burst) / (own + burst) : 1
  })
}

/** Observed against expected, cautious while little was expected. */
export function levelOf({ seen, expected }: Tally, caution: number): number {
  return (caution + seen) / (caution + expected)
}

export function dayLevel(intensity: Intensity): number {
  return levelOf(intensity.today, dayCaution)
}

export function recentLevel(intensity: Intensity): number {
  return levelOf(intensity.recent, recentCaution)
}

/** The probability that a lull which is on goes on for so many seconds. */
export function lullLasts(seconds: number): number {
  return Math.exp(-seconds / lullSeconds)
}

function judge(intensity: Intensity, base: number, seconds: number, credit: number): void {
  const { trust, bursts } = intensity
  const voices = [base * dayLevel(intensity), base * recentLevel(intensity)]
  for (const [k, memory] of burstSeconds.entries())
    voices.push((bursts[k] ?? 0) * Math.exp(-seconds / memory))
  // Each voice speaks as loudly as it is trusted, and is credited with its share of the alert.
  const spoken = voices.map((voice, at) => voice * (trust[at] ?? 0))
  const total = spoken.reduce((sum, voice) => sum + voice, 0)
  if (total <= 0) return
  for (let at = 0; at < trust.length; at++)
    trust[at] = (trust[at] ?? 0) + (credit * (spoken[at] ?? 0)) / total
  const trusted = trust.reduce((sum, voice) => sum + voice, 0)
  if (trusted <= trustMax) return
  for (let at = 0; at < trust.length; at++) trust[at] = ((trust[at] ?? 0) * trustMax) / trusted
}

/** An alert ends a lull; each alert that the profile, apart from bursts, expected in vain makes one e times likelier. */
function noteSilence(
  intensity: Intensity,
  atMs: number,
  firedAtMs: readonly number[],
  expected: number,
): void {
  const { trust } = intensity
  const seconds = Math.max(0, atMs - intensity.atMs) / 1_000
  if (seconds <= 0) return
  const sinceMs = firedAtMs.reduce((latest, at) => Math.max(latest, at), intensity.atMs)
  const silence = Math.max(0, atMs - sinceMs) / 1_000
  const own = ((trust[0] ?? 0) + (trust[1] ?? 0)) / trust.reduce((sum, voice) => sum + voice, 0)
  const missed = expected * dayLevel(intensity) * own * (silence / seconds)
  const before = firedAtMs.length > 0 ? 0 : intensity.lullOdds
  const odds = (before + silence / lullEverySeconds) * Math.exp(Math.min(proofMax, missed))
  const probability = (odds / (1 + odds)) * lullLasts(seconds)
  intensity.lullOdds = probability / Math.max(1e-6, 1 - probability)
}
