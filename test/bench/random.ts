/** A seeded generator (mulberry32) and the distributions that the traces are made of. */
export interface Random {
  /** In [0, 1). */
  next(): number
  exponential(mean: number): number
  normal(): number
  poisson(mean: number): number
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const exponential = (mean: number) => -mean * Math.log(1 - next())
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
  const poisson = (mean: number) => {
    // Waiting times add up to any mean without the underflow of the product form.
    let count = 0
    for (let sum = exponential(1); sum < mean; sum += exponential(1)) count++
    return count
  }
  return { next, exponential, normal, poisson }
}
