interface Slope {
  /** Units of y an hour. */
  readonly anHour: number
  /** The true slope lies between these with a probability of 95 %, as far as a straight line describes what was seen. */
  readonly from: number
  readonly to: number
}

interface Point {
  readonly atMs: number
  readonly value: number
}

const hourMs = 3_600_000

/**
 * The straight line of least squares. Neighbours resemble each other, so that there are fewer independent points than
 * points: their number is lowered by the correlation of each residual with the next one. Fewer than four points have no slope.
 */
export function slopeOf(points: readonly Point[]): Slope {
  const none = { anHour: Number.NaN, from: Number.NaN, to: Number.NaN }
  if (points.length < 4) return none
  const meanMs = mean(points.map(({ atMs }) => atMs))
  const level = mean(points.map(({ value }) => value))
  const centred = points.map(({ atMs, value }) => ({ x: (atMs - meanMs) / hourMs, y: value - level }))
  const xx = sum(centred.map(({ x }) => x * x))
  const anHour = sum(centred.map(({ x, y }) => x * y)) / xx
  const residuals = centred.map(({ x, y }) => y - anHour * x)
  const squares = sum(residuals.map((each) => each * each))
  const neighbours = sum(residuals.slice(1).map((each, at) => each * (residuals[at] ?? 0)))
  const correlation = squares === 0 ? 0 : Math.min(0.95, Math.max(0, neighbours / squares))
  const independent = (points.length * (1 - correlation)) / (1 + correlation)
  const freedom = Math.max(1, independent - 2)
  const error = Math.sqrt(squares / freedom / xx)
  // Student's t for 95 %, within 2 % from four degrees of freedom on.
  const margin = (1.96 + 2.4 / freedom + 2.8 / freedom ** 2) * error
  return { anHour, from: anHour - margin, to: anHour + margin }
}

/** The mean of each stretch of `lengthMs`, at its middle; the last one counts only when it is whole. */
export function meansOf(points: readonly Point[], lengthMs: number): Point[] {
  const first = points[0]?.atMs ?? 0
  const last = points.at(-1)?.atMs ?? 0
  const count = Math.floor((last - first) / lengthMs)
  return Array.from({ length: count }, (_, index) => {
    const from = first + index * lengthMs
    const within = points.filter(({ atMs }) => atMs >= from && atMs < from + lengthMs)
    return { atMs: from + lengthMs / 2, value: mean(within.map(({ value }) => value)) }
  }).filter(({ value }) => !Number.isNaN(value))
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length
}

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + each, 0)
}
