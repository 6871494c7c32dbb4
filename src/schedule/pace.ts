/**
 * The day's units as water: every span of time demands polls, the scale turns demands into polls a second between a
 * floor and a ceiling, and the scale is sought that spends the units that are left.
 */

/** Stretches of time, in order, with a demand each. The arrays are reused; only the first `length` entries count. */
export interface Spans {
  length: number
  readonly seconds: Float64Array
  readonly demand: Float64Array
}

export interface Limits {
  /** Polls a second. */
  readonly floor: number
  readonly ceiling: number
}

/** What a wish for polls a second comes to; absent where wishes come true as they are. */
export type Response = (perSecond: number) => number

export function createSpans(lengthMax: number): Spans {
  return { length: 0, seconds: new Float64Array(lengthMax), demand: new Float64Array(lengthMax) }
}

export function addSpan(spans: Spans, seconds: number, demand: number): void {
  spans.seconds[spans.length] = seconds
  spans.demand[spans.length] = demand
  spans.length++
}

const roundsMax = 60
/** Beyond these every span stands at the floor, or at the ceiling. */
const scaleMin = 1e-6
const scaleMax = 1e6
/** How exactly the units are to be met, in units. */
const tolerance = 0.02

/** The scale at which the spans take `units` polls; `guess` is where to start looking. */
export function solveScale(
  spans: Spans,
  units: number,
  limits: Limits,
  guess: number,
  response: Response | undefined,
): number {
  let scale = clamp(guess, scaleMin, scaleMax)
  let low = 0
  let high = Number.POSITIVE_INFINITY
  for (let round = 0; round < roundsMax; round++) {
    const { polls, slope } = response ? takeBy(spans, scale, limits, response) : take(spans, scale, limits)
    if (Math.abs(polls - units) <= tolerance) return scale
    if (polls < units) low = scale
    else high = scale
    const newton = slope > 0 ? scale + (units - polls) / slope : Number.NaN
    if (newton > low && newton < high) scale = Math.min(scale * 8, Math.max(scale / 8, newton))
    else if (high === Number.POSITIVE_INFINITY) scale *= 2
    else scale = low === 0 ? scale / 2 : (low + high) / 2
    if (scale > scaleMax || scale < scaleMin || high - low < 1e-9 * high) break
  }
  return clamp(scale, scaleMin, scaleMax)
}

/** The most polls that the spans can take. */
export function mostPolls(spans: Spans, limits: Limits, response: Response): number {
  return takeBy(spans, scaleMax, limits, response).polls
}

export function clamp(value: number, low: number, high: number): number {
  return value < low ? low : value > high ? high : value
}

/** Polls at this scale, and how fast they grow with it. */
function take({ length, seconds, demand }: Spans, scale: number, { floor, ceiling }: Limits) {
  let polls = 0
  let slope = 0
  for (let at = 0; at < length; at++) {
    const time = seconds[at] ?? 0
    const wish = scale * (demand[at] ?? 0)
    if (wish <= floor) polls += time * floor
    else if (wish >= ceiling) polls += time * ceiling
    else {
      polls += time * wish
      slope += time * (demand[at] ?? 0)
    }
  }
  return { polls, slope }
}

/** The same where wishes do not come true as they are; without a slope, so that the search halves. */
function takeBy(
  { length, seconds, demand }: Spans,
  scale: number,
  { floor, ceiling }: Limits,
  response: Response,
) {
  let polls = 0
  for (let at = 0; at < length; at++)
    polls += (seconds[at] ?? 0) * clamp(response(scale * (demand[at] ?? 0)), floor, ceiling)
  return { polls, slope: 0 }
}
