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
  let scale = clamp(guess, scaleMin, scaleMax)
  let low = 0
  let high = Number.POSITIVE_INFINITY
  for (let round = 0; round < roundsMax; round++) {
    const { polls, slope } =
      response && logs
        ? pollsOfResponse(seconds, logs, scale, limits, response)
        : pollsAt(seconds, demands, scale, limits)
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

/** Instants at which a poll may come, in seconds from now, with the alerts until then. */
export interface Points {
  readonly times: number[]
  readonly masses: number[]
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
