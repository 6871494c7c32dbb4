/** Repeatable random numbers: the same seed gives the same alerts, gaps and ids. */
export interface Random {
  /** From 0 up to, but not, 1. */
  next(): number
  /** A whole number from 0 up to, but not, `below`. */
  int(below: number): number
  pick<T>(list: readonly [T, ...T[]]): T
  /** A waiting time of a Poisson process. */
  exponential(mean: number): number
}

export function createRandom(seed: number): Random {
  let count = 0
  const next = () => {
    count += 1
    return drawnAt(seed, count)
  }
  const int = (below: number) => Math.floor(next() * below)
  return {
    next,
    int,
    pick: (list) => list[int(list.length)] ?? list[0],
    exponential: (mean) => -Math.log(1 - next()) * mean,
  }
}

/** The draw of this number, from 1, of the mulberry32 generator: 32 bits of state are enough for synthetic rows. */
export function drawnAt(seed: number, count: number): number {
  const state = ((seed >>> 0) + Math.imul(count, 0x6d2b79f5)) >>> 0
  let mixed = Math.imul(state ^ (state >>> 15), state | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}
