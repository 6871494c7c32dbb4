/**
 * From counts to a shape: the day is cut in three, each part in three again, then into halves, down to five minutes.
 * At each cut the counts are weighed against the prior's shares. The prior counts as some number of alerts (its
 * concentration): several are tried, and each is believed as far as it would have predicted the counts, of all cuts of that
 * level and of this one. So steps such as an opening bell stay sharp, and a few alerts a week stay smooth.
 */

/** Concentrations that are tried, in alerts; with the last one the prior alone decides. */
const concentrations = [1.5, 5, 15, 50, 150, 10_000]
/** Bins a block, from coarse to fine. */
const blockSizes = [96, 32, 16, 8, 4, 2, 1]
/** How much of what a cut believes of the concentrations, before it sees its own counts, does not come from its level. */
const ownConcentration = 0.1

interface DayShape {
  /** The share of a day that each bin holds, summing to 1. */
  readonly shares: Float64Array
  /** The logarithm of the probability of the counts under this prior, less a number that is the same for all priors. */
  readonly logEvidence: number
}

/** `prior` must be positive and sum to 1. */
export function smoothShape(counts: Float64Array, prior: Float64Array): DayShape {
  let log = 0
  let shares: Float64Array = Float64Array.of(1)
  let countsAbove: Float64Array = Float64Array.of(sumOf(counts))
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
  for (let block = 0, at = 0; block < sums.length; block++) {
    let sum = 0
    for (const end = at + size; at < end; at++) sum += values[at] ?? 0
    sums[block] = sum
  }
  return sums
}

/**
 * The logarithms of how likely the counts of each run of `size` values are under a Dirichlet-multinomial with these weights, times
 * `factor` (the binomial factor, which is the same for all weights, left out). Neighbours often have the same weight, and its
 * logarithm is most of the work.
 */
export function logEvidence(
  counts: Float64Array,
  weights: Float64Array,
  size: number,
  factor = 1,
): Float64Array {
  const logs = new Float64Array(counts.length / size)
  let [weightBefore, ofWeight, sumBefore, ofSum] = [Number.NaN, 0, Number.NaN, 0]
  for (let run = 0, at = 0; run < logs.length; run++) {
    let [log, countSum, weightSum] = [0, 0, 0]
    for (const end = at + size; at < end; at++) {
      const count = counts[at] ?? 0
      const weight = (weights[at] ?? 0) * factor
      countSum += count
      weightSum += weight
      if (count <= 0) continue
      if (weight !== weightBefore) ofWeight = logGamma(weight)
      weightBefore = weight
      log += logGamma(weight + count) - ofWeight
    }
    if (countSum <= 0) continue
    if (weightSum !== sumBefore) ofSum = logGamma(weightSum)
    sumBefore = weightSum
    logs[run] = log + ofSum - logGamma(weightSum + countSum)
  }
  return logs
}

interface Cut {
  readonly above: Float64Array
  readonly here: Float64Array
}

function refine(shares: Float64Array, counts: Cut, prior: Cut): DayShape {
  const children = counts.here.length / shares.length
  const guess = new Float64Array(prior.here.length)
  for (let at = 0; at < guess.length; at++)
    guess[at] = (prior.here[at] ?? 0) / Math.max(1e-300, prior.above[Math.floor(at / children)] ?? 0)
  const evidence = concentrations.map((each) => logEvidence(counts.here, guess, children, each))
  const levels = Float64Array.from(evidence, sumOf)
  const prefer = softmax(Float64Array.from(levels)).map((weight) =>
    Math.log((1 - ownConcentration) * weight + ownConcentration / concentrations.length),
  )
  const next = new Float64Array(counts.here.length)
  const trust = new Float64Array(concentrations.length)
  for (let node = 0; node < shares.length; node++) {
    for (let at = 0; at < trust.length; at++) trust[at] = (prefer[at] ?? 0) + (evidence[at]?.[node] ?? 0)
    softmax(trust)
    const whole = counts.above[node] ?? 0
    for (let child = node * children; child < (node + 1) * children; child++) {
      let share = 0
      for (let at = 0; at < trust.length; at++) {
        const concentration = concentrations[at] ?? 0
        share +=
          ((trust[at] ?? 0) * ((counts.here[child] ?? 0) + concentration * (guess[child] ?? 0))) /
          (whole + concentration)
      }
      next[child] = (shares[node] ?? 0) * share
    }
  }
  return { shares: next, logEvidence: logMean(levels) }
}

function sumOf(values: Float64Array): number {
  let sum = 0
  for (let at = 0; at < values.length; at++) sum += values[at] ?? 0
  return sum
}

function logMean(logs: Float64Array): number {
  const most = Math.max(...logs)
  return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0) / logs.length)
}

/** Overwrites the logarithms: a forecast asks a thousand times, so nothing is allocated. */
function softmax(logs: Float64Array): Float64Array {
  let most = Number.NEGATIVE_INFINITY
  for (let at = 0; at < logs.length; at++) most = Math.max(most, logs[at] ?? 0)
  let total = 0
  for (let at = 0; at < logs.length; at++) {
    logs[at] = Math.exp((logs[at] ?? 0) - most)
    total += logs[at] ?? 0
  }
  for (let at = 0; at < logs.length; at++) logs[at] = (logs[at] ?? 0) / total
  return logs
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
  return (
    (x - 0.5) * Math.log(x) - x + 0.918_938_533_204_672_8 + series - (product === 1 ? 0 : Math.log(product))
  )
}
