/**
 * From counts to a shape: the day is cut in three, each part in three again, then into halves, down to five minutes.
 * At each cut the counts are weighed against what the prior says of it. How much they must weigh to be believed (the
 * inertia) is itself judged by how well it would have predicted them, for the whole level and for the cut: steps such as
 * an opening bell stay sharp, a few alerts a week stay smooth.
 */

/** Inertias that are tried, in alerts; the last one is the prior as it stands. */
const inertias = [1.5, 5, 15, 50, 150, 10_000]
/** Bins a block, from coarse to fine. */
const blockSizes = [96, 32, 16, 8, 4, 2, 1]
/** What the inertia found for the whole level leaves to that of each cut. */
const ownInertia = 0.1

export interface DayShape {
  /** The share of a day that each bin holds, summing to 1. */
  readonly shares: Float64Array
  /** The logarithm of how well this prior predicted the counts; only differences between priors mean something. */
  readonly logEvidence: number
}

/** `prior` must be positive and sum to 1. */
export function smoothShape(counts: Float64Array, prior: Float64Array): DayShape {
  let log = 0
  let shares: Float64Array = Float64Array.of(1)
  let countsAbove: Float64Array = Float64Array.of(counts.reduce((sum, count) => sum + count, 0))
  let priorAbove: Float64Array = Float64Array.of(1)
  for (const size of blockSizes) {
    const countsHere = blockSums(counts, size)
    const priorHere = blockSums(prior, size)
    const level = refine(
      shares,
      { above: countsAbove, here: countsHere },
      { above: priorAbove, here: priorHere },
    )
    shares = level.shares
    log += level.logEvidence
    countsAbove = countsHere
    priorAbove = priorHere
  }
  return { shares, logEvidence: log }
}

/** Sums of runs of `size` values. */
export function blockSums(values: Float64Array, size: number): Float64Array {
  const sums = new Float64Array(values.length / size)
  for (let at = 0; at < values.length; at++) {
    const block = Math.floor(at / size)
    sums[block] = (sums[block] ?? 0) + (values[at] ?? 0)
  }
  return sums
}

/**
 * The logarithm of how likely counts are under a Dirichlet-multinomial with these weights (the binomial factor, which
 * is the same for all weights, left out).
 */
export function logEvidence(counts: Float64Array, weights: Float64Array): number {
  let log = 0
  let countSum = 0
  let weightSum = 0
  for (let at = 0; at < counts.length; at++) {
    const count = counts[at] ?? 0
    const weight = weights[at] ?? 0
    countSum += count
    weightSum += weight
    if (count > 0) log += logGamma(weight + count) - logGamma(weight)
  }
  return log + logGamma(weightSum) - logGamma(weightSum + countSum)
}

interface Cut {
  readonly above: Float64Array
  readonly here: Float64Array
}

function refine(shares: Float64Array, counts: Cut, prior: Cut): DayShape {
  const children = counts.here.length / shares.length
  const guess = prior.here.map(
    (value, at) => value / Math.max(1e-300, prior.above[Math.floor(at / children)] ?? 0),
  )
  const evidence = inertias.map((inertia) =>
    shares.map((_, node) => {
      if ((counts.above[node] ?? 0) <= 0) return 0
      const [from, to] = [node * children, (node + 1) * children]
      return logEvidence(
        counts.here.subarray(from, to),
        guess.slice(from, to).map((share) => share * inertia),
      )
    }),
  )
  const levels = evidence.map((nodes) => nodes.reduce((sum, log) => sum + log, 0))
  const verdict = softmax(levels)
  const prefer = verdict.map((weight) => Math.log((1 - ownInertia) * weight + ownInertia / inertias.length))
  const next = new Float64Array(counts.here.length)
  for (let node = 0; node < shares.length; node++) {
    const trust = softmax(prefer.map((log, at) => log + (evidence[at]?.[node] ?? 0)))
    const whole = counts.above[node] ?? 0
    for (let child = node * children; child < (node + 1) * children; child++) {
      let share = 0
      for (const [at, inertia] of inertias.entries())
        share +=
          ((trust[at] ?? 0) * ((counts.here[child] ?? 0) + inertia * (guess[child] ?? 0))) / (whole + inertia)
      next[child] = (shares[node] ?? 0) * share
    }
  }
  return { shares: next, logEvidence: logMean(levels) }
}

function logMean(logs: readonly number[]): number {
  const most = Math.max(...logs)
  return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0) / logs.length)
}

function softmax(logs: readonly number[]): number[] {
  const most = Math.max(...logs)
  const weights = logs.map((log) => Math.exp(log - most))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return weights.map((weight) => weight / total)
}

/** Stirling's series, after shifting small arguments up to where it is exact to ten digits. */
function logGamma(value: number): number {
  let x = value
  let product = 1
  while (x < 8) {
    product *= x
    x++
  }
  const inverse = 1 / (x * x)
  const series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1_260 - inverse / 1_680))) / x
  return (x - 0.5) * Math.log(x) - x + 0.918_938_533_204_672_8 + series - Math.log(product)
}
