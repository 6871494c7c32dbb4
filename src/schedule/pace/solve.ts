import { type ScheduleOptions, usualLongestMs } from '../schedule.ts'

/**
 * From demand to polls. The demand of a span says how it compares with others; demand times the scale is its *wish*, in polls a
 * second, and the wish within the floor and the ceiling is its pace. Finds the scale at which all spans together take exactly
 * the units that there are.
 */

export interface PaceLimits {
  /** Polls a second. */
  readonly floor: number
  readonly ceiling: number
}

/**
 * The pace that each wish leads to, where polls cannot follow wishes exactly (on marks): a table over the logarithm of the wish,
 * straight lines between its entries.
 */
export interface Response {
  /** Polls a second for wishes of `2^from`, `2^(from + 1 / steps)`, … polls a second; never falling. */
  readonly paces: Float64Array
  readonly from: number
  readonly steps: number
}

const roundsMax = 60
/** Beyond these every span is at the floor, or at the ceiling. */
const scaleMin = 1e-9
const scaleMax = 1e9
/** How exactly the units are to be met, as a share of them: the next decision is made with what is then left. */
const tolerance = 5e-4

/** The slowest and the fastest pace of a day with so many units; one function for plan, preview, marks and simulation. */
export function limitsFor(options: ScheduleOptions, unitsPerDay: number, daySeconds = 86_400): PaceLimits {
  const even = unitsPerDay / daySeconds
  const ceiling = 1_000 / options.minIntervalMs
  // An interval that follows from the budget follows from the one that the API grants.
  const longestMs = hasUsualLongest(options) ? usualLongestMs(unitsPerDay) : options.maxIntervalMs
  const floor = Math.min(ceiling, Math.max(1_000 / longestMs, options.floor * even))
  return { floor, ceiling }
}

/** Whether the longest interval follows from the budget; otherwise the config names it. */
export function hasUsualLongest({ maxIntervalMs, unitsPerDay }: ScheduleOptions): boolean {
  return maxIntervalMs === usualLongestMs(unitsPerDay)
}

/** The scale at which spans of `seconds` with these demands take `units` polls; `guess` is one that is thought to be near it. */
export function solveScale(
  seconds: readonly number[],
  demands: readonly number[],
  units: number,
  limits: PaceLimits,
  response?: Response,
  guess = units / Math.max(1e-300, dot(seconds, demands)),
): number {
  const logs = response && demands.map((each) => Math.log2(Math.max(1e-300, each)))
  const pollsOf = (scale: number) =>
    response && logs
      ? pollsOfResponse(seconds, logs, scale, limits, response)
      : pollsAt(seconds, demands, scale, limits)
  return scaleFor(units, pollsOf, guess)
}

/** Polls, and how fast they grow with the scale. */
export interface Spent {
  readonly polls: number
  readonly slope: number
}

/** The scale at which so many units are spent. */
export function scaleFor(units: number, spentAt: (scale: number) => Spent, guess: number): number {
  let scale = clamp(guess, scaleMin, scaleMax)
  let low = 0
  let high = Number.POSITIVE_INFINITY
  for (let round = 0; round < roundsMax; round++) {
    const { polls, slope } = spentAt(scale)
    if (Math.abs(polls - units) <= tolerance * units) return scale
    if (polls < units) low = scale
    else high = scale
    const newton = slope > 0 ? scale + (units - polls) / slope : Number.NaN
    if (newton > low && newton < high) scale = clamp(newton, scale / 8, scale * 8)
    else if (high === Number.POSITIVE_INFINITY) scale *= 2
    else scale = low === 0 ? scale / 2 : (low + high) / 2
    if (scale > scaleMax || scale < scaleMin || high - low < 1e-9 * high) break
  }
  return clamp(scale, scaleMin, scaleMax)
}

export function clamp(value: number, low: number, high: number): number {
  return value < low ? low : value > high ? high : value
}

/** The pace, in polls a second, that a wish for so many leads to. */
export function respond({ paces, from, steps }: Response, wish: number): number {
  const place = clamp((Math.log2(Math.max(1e-300, wish)) - from) * steps, 0, paces.length - 1)
  const at = Math.min(Math.floor(place), paces.length - 2)
  const here = paces[at] ?? 0
  return here + (place - at) * ((paces[at + 1] ?? 0) - here)
}

/** Polls at this scale, and how fast they grow with it. */
function pollsAt(
  seconds: readonly number[],
  demands: readonly number[],
  scale: number,
  { floor, ceiling }: PaceLimits,
) {
  let polls = 0
  let slope = 0
  for (let at = 0; at < seconds.length; at++) {
    const time = seconds[at] ?? 0
    const demand = demands[at] ?? 0
    const wish = scale * demand
    if (wish <= floor) polls += time * floor
    else if (wish >= ceiling) polls += time * ceiling
    else {
      polls += time * wish
      slope += time * demand
    }
  }
  return { polls, slope }
}

/** The same through a response; `logs` are those of the demands, to the base of 2. */
function pollsOfResponse(
  seconds: readonly number[],
  logs: readonly number[],
  scale: number,
  { floor, ceiling }: PaceLimits,
  { paces, from, steps }: Response,
) {
  const shift = Math.log2(scale) - from
  const last = paces.length - 1
  let polls = 0
  let slope = 0
  for (let span = 0; span < seconds.length; span++) {
    const time = seconds[span] ?? 0
    const place = clamp(((logs[span] ?? 0) + shift) * steps, 0, last)
    const at = Math.min(Math.floor(place), last - 1)
    const here = paces[at] ?? 0
    const rise = (paces[at + 1] ?? 0) - here
    const pace = here + (place - at) * rise
    if (pace <= floor) polls += time * floor
    else if (pace >= ceiling) polls += time * ceiling
    else {
      polls += time * pace
      if (place > 0 && place < last) slope += time * rise
    }
  }
  return { polls, slope: (slope * steps) / (scale * Math.LN2) }
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}

/** An hour with announced evaluations. Roots are those of alerts a second, which polls go along. */
export interface Hour {
  readonly seconds: number
  /** Seconds in which evaluations bring alerts, and the mean root in these. */
  readonly busySeconds: number
  readonly busyRoot: number
  /** Evaluations whose alerts come apart from each other; of unequal ones, those that bring few alerts count for less. */
  readonly evaluations: number
  /** The root of the alerts that no evaluation explains, and of all in the mean. */
  readonly otherRoot: number
  readonly meanRoot: number
}

/**
 * Where the pace falls by more than this factor, an evaluation's alerts are over. Alerts 58 to 62 s after an evaluation have 0.55 of even, and 0.99
 * where this is not looked for (2,000 units, five days); from 1.2 to 8 the polls are the same.
 */
export const endFactor = 2

/**
 * What the cheapest series of polls takes in an hour. As long as that costs less than to pass an evaluation over, there is a poll at the end
 * of its alerts, even where these seconds ask for less than one. A series that passes some over (`passes`) takes what it would if alerts came
 * at any time. `busyFactor`: the wait by `busyPace` alone, in parts of the wait of an evaluation's alerts.
 */
export function spentIn(hour: Hour, scale: number, { floor, ceiling }: PaceLimits) {
  const { seconds, busySeconds, busyRoot, evaluations, otherRoot, meanRoot } = hour
  const busyPace = clamp(scale * busyRoot, floor, ceiling)
  const quietPace = clamp(scale * otherRoot, floor, ceiling)
  const meanPace = clamp(scale * meanRoot, floor, ceiling)
  const slopeOf = (pace: number, root: number) => (pace === scale * root ? root : 0)
  const busy = Math.max(evaluations, busyPace * busySeconds)
  // From an evaluation's last poll to the first of the next one there is one poll less than there are gaps.
  const between = seconds - busySeconds + evaluations * (busySeconds / Math.max(1e-9, busy))
  const quiet = Math.max(0, quietPace * between - evaluations * (scale * otherRoot < floor ? 0.5 : 1))
  const passes = meanPace * seconds < busy + quiet
  const untilEnd = (0.5 * busySeconds) / Math.max(1e-9, busy)
  const untilNext = evaluations > 0 ? untilEnd + 0.5 * (1 / meanPace - seconds / evaluations) : 0
  const busyWait = passes ? Math.max(0.5 / busyPace, untilNext) : untilEnd
  const isApart = busySeconds > 0 && busy > endFactor * quietPace * busySeconds
  return {
    ...{ busyPace, quietPace, passes },
    busyFactor: isApart ? 0.5 / busyPace / busyWait : 1,
    polls: passes ? meanPace * seconds : busy + quiet,
    slope: passes
      ? slopeOf(meanPace, meanRoot) * seconds
      : (busy > evaluations ? slopeOf(busyPace, busyRoot) * busySeconds : 0) +
        (quiet > 0 ? slopeOf(quietPace, otherRoot) * between : 0),
  }
}

/** Instants at which a poll may come, in seconds from now, with the alerts until then. */
export interface Points {
  readonly times: number[]
  readonly masses: number[]
}

/** In quiet times one instant in so many seconds is looked at. */
const quietSeconds = 15
/** Comparing all pairs of instants takes time with the square of their number. */
const busyPointsMax = 160

/**
 * The instants at which polls may come in the next two of the longest gaps, by the alerts of each second, `other` more in each, of which
 * `passed` are over; above `busy` they come so fast that each second is one.
 */
export function pointsOf(
  alerts: { readonly rates: Float64Array; readonly other: number; readonly passed: number },
  busy: number,
  gap: number,
): Points {
  const { rates, other, passed } = alerts
  const seconds = Math.ceil(2 * gap)
  const points: Points = { times: [0], masses: [0] }
  let busySeconds = 0
  for (let second = 0; second < seconds; second++) if ((rates[second] ?? 0) + other > busy) busySeconds++
  const busyStep = Math.ceil(busySeconds / busyPointsMax)
  let [mass, skipped] = [0, 0]
  for (let second = 0; second < seconds; second++) {
    const alerts = (rates[second] ?? 0) + other
    mass += alerts
    skipped++
    const end = second + 1 - passed
    const isLatest = end >= gap && end - 1 < gap
    // At the last second before quiet ones, a poll finds all alerts of an evaluation.
    const isEnd = alerts > busy && (rates[second + 1] ?? 0) + other <= busy
    const isPoint = skipped >= (alerts > busy ? busyStep : quietSeconds) || isEnd
    if (!isPoint && !isLatest && second < seconds - 1) continue
    skipped = 0
    points.times.push(isLatest ? gap : end)
    points.masses.push(mass)
  }
  return points
}

/**
 * The first poll of the series that costs least: the waiting of all alerts, and the price of each poll. By dynamic programming from the
 * end; the last point is always a poll.
 */
export function cheapest(
  { times, masses }: Points,
  price: number,
  shortest: number,
  longest: number,
): number {
  const last = times.length - 1
  // What alerts wait is the instants of their polls less their own, which no series changes and which are left out. A poll at `to` after
  // one at `from` then costs `ahead[to] - times[to] * masses[from]` with all that follow it. (A copy is made faster than a typed array.)
  const ahead = times.slice()
  ahead[last] = (times[last] ?? 0) * (masses[last] ?? 0)
  let [nearest, next] = [times.length, last]
  for (let from = last - 1; from >= 0; from--) {
    const at = times[from] ?? 0
    const mass = masses[from] ?? 0
    while (nearest > from + 1 && (times[nearest - 1] ?? 0) - at >= shortest) nearest--
    while (next > nearest && (times[next] ?? 0) - at > longest) next--
    let best = Number.MAX_VALUE
    // After an earlier poll the next one is never later (the Monge property), so nothing behind the last choice is looked at.
    for (let to = next; to >= nearest; to--) {
      const cost = (ahead[to] ?? 0) - (times[to] ?? 0) * mass
      if (cost > best) continue
      best = cost
      next = to
    }
    ahead[from] = at * mass + price + best
  }
  return times[next] ?? 0
}
