/**
 * Demand becomes polls: the scale is sought at which the spans take exactly the units that there are, no span less than
 * the floor and none more than the ceiling.
 */

export interface Limits {
  /** Polls a second. */
  readonly floor: number
  readonly ceiling: number
}

/** What a pace that is wished for comes to; absent where wishes come true as they are. */
export type Response = (perSecond: number) => number

const roundsMax = 60
/** Beyond these every span is at the floor, or at the ceiling. */
const scaleMin = 1e-9
const scaleMax = 1e9
/** How exactly the units are to be met, in units. */
const tolerance = 0.02
const slopeStep = 1.01

/** The scale at which spans of `seconds` with these demands take `units` polls. */
export function solveScale(
  seconds: readonly number[],
  demand: readonly number[],
  units: number,
  limits: Limits,
  response?: Response,
): number {
  let scale = clamp(units / Math.max(1e-300, dot(seconds, demand)), scaleMin, scaleMax)
  let low = 0
  let high = Number.POSITIVE_INFINITY
  for (let round = 0; round < roundsMax; round++) {
    const { polls, slope } = pollsAt(seconds, demand, scale, limits, response)
    if (Math.abs(polls - units) <= tolerance) return scale
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

/** The most polls that the spans can take. */
export function mostPolls(
  seconds: readonly number[],
  demand: readonly number[],
  limits: Limits,
  response: Response,
): number {
  return pollsAt(seconds, demand, scaleMax, limits, response).polls
}

export function clamp(value: number, low: number, high: number): number {
  return value < low ? low : value > high ? high : value
}

/** Polls at this scale, and how fast they grow with it; the slope of a response is measured over one per cent. */
function pollsAt(
  seconds: readonly number[],
  demand: readonly number[],
  scale: number,
  { floor, ceiling }: Limits,
  response?: Response,
) {
  let polls = 0
  let slope = 0
  for (let at = 0; at < seconds.length; at++) {
    const time = seconds[at] ?? 0
    const each = demand[at] ?? 0
    const asked = scale * each
    const wish = response ? response(asked) : asked
    if (wish <= floor) polls += time * floor
    else if (wish >= ceiling) polls += time * ceiling
    else {
      polls += time * wish
      slope += response
        ? (time * (response(asked * slopeStep) - wish)) / (scale * (slopeStep - 1))
        : time * each
    }
  }
  return { polls, slope }
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}
