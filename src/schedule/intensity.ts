/**
 * How likely alerts are right now: the profile at the level of today, the profile at the level of the last minutes,
 * and three memories of bursts, each trusted as far as it foretold the alerts that came.
 */
export interface Intensity {
  /** Alerts that each voice foretold, fading from day to day: today's level, the last minutes' level, three bursts. */
  readonly trust: number[]
  /** Bursts as alerts a second at `atMs`, one a memory. */
  readonly bursts: number[]
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
const burstSeconds = [30, 180, 1_200]
const recentSeconds = 1_200
const youngTrust = [30, 3, 2, 5, 2]
const trustKept = 0.8

export function emptyIntensity(): Intensity {
  const tally = () => ({ seen: 0, expected: 0 })
  return { trust: [...youngTrust], bursts: [0, 0, 0], atMs: 0, today: tally(), recent: tally() }
}

/** A new day starts level, and what was trusted lately is weighed against what is usual. */
export function startDay(intensity: Intensity): void {
  const { trust, today } = intensity
  for (let at = 0; at < trust.length; at++)
    trust[at] = trustKept * (trust[at] ?? 0) + (1 - trustKept) * (youngTrust[at] ?? 0)
  today.seen = 0
  today.expected = 0
}

/**
 * Takes in what a poll at `atMs` found; `expected` is what the profile expected since the last one. What is told of
 * the voices is what they knew at the last poll: alerts of one poll cannot foretell each other, for the next poll could
 * not have come in between.
 */
export function noteArrivals(
  intensity: Intensity,
  atMs: number,
  firedAtMs: readonly number[],
  baseAt: (atMs: number) => number,
  expected: number,
): void {
  for (const at of firedAtMs) judge(intensity, baseAt(at), Math.max(0, at - intensity.atMs) / 1_000)
  const seconds = Math.max(0, atMs - intensity.atMs) / 1_000
  const { today, recent, bursts } = intensity
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

/** The expectation as numbers that the planner can use without looking back: all in alerts a second. */
export interface Outlook {
  /** What the profile's rate is multiplied by today. */
  readonly level: number
  /** What is added to `level` by the last minutes, fading. */
  readonly swing: number
  /** Weighted bursts at the time of the outlook. */
  readonly bursts: readonly number[]
}

export function outlookAt(intensity: Intensity, atMs: number): Outlook {
  const { trust, today, recent, bursts } = intensity
  const total = trust.reduce((sum, voice) => sum + voice, 0)
  const share = (voice: number) => (trust[voice] ?? 0) / total
  const seconds = Math.max(0, atMs - intensity.atMs) / 1_000
  const level = levelOf(today, 3)
  return {
    level: (share(0) + share(1)) * level,
    swing: share(1) * (levelOf(recent, 2) - level) * Math.exp(-seconds / recentSeconds),
    bursts: bursts.map((burst, k) => share(k + 2) * burst * Math.exp(-seconds / (burstSeconds[k] ?? 1))),
  }
}

/** Expected alerts a second, `seconds` after the outlook, where the profile says `base`. */
export function expectedRate(outlook: Outlook, base: number, seconds: number): number {
  let rate = base * Math.max(0, outlook.level + outlook.swing * Math.exp(-seconds / recentSeconds))
  for (const [k, burst] of outlook.bursts.entries())
    rate += burst * Math.exp(-seconds / (burstSeconds[k] ?? 1))
  return rate
}

function judge({ trust, bursts, today, recent }: Intensity, base: number, seconds: number): void {
  const voices = [base * levelOf(today, 3), base * levelOf(recent, 2)]
  for (const [k, memory] of burstSeconds.entries())
    voices.push((bursts[k] ?? 0) * Math.exp(-seconds / memory))
  // Each voice speaks as loudly as it is trusted, and is credited with its share of the alert.
  const spoken = voices.map((voice, at) => voice * (trust[at] ?? 0))
  const total = spoken.reduce((sum, voice) => sum + voice, 0)
  for (let at = 0; total > 0 && at < trust.length; at++)
    trust[at] = (trust[at] ?? 0) + (spoken[at] ?? 0) / total
}

/** Observed against expected, cautious while little was expected. */
function levelOf({ seen, expected }: Tally, caution: number): number {
  return (caution + seen) / (caution + expected)
}
