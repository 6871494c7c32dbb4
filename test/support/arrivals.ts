import { afterOwnMs } from './own-time.ts'

/** What comes in to a receiver, for tests that wait for it. */
export interface Arrivals<T> {
  readonly all: readonly T[]
  add(one: T): void
  /** Resolves when so many have come in all; rejects after `limitMs`. */
  received(count: number, limitMs?: number): Promise<readonly T[]>
}

export function createArrivals<T>(noun: string): Arrivals<T> {
  const all: T[] = []
  const waiting = new Set<() => void>()
  return {
    all,
    add(one) {
      all.push(one)
      for (const check of waiting) check()
    },
    received: (count, limitMs = 10_000) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (all.length < count) return
          limit.off()
          waiting.delete(check)
          resolve(all)
        }
        const limit = afterOwnMs(limitMs, () => {
          waiting.delete(check)
          reject(new Error(`${all.length} of ${count} ${noun} within ${limitMs} ms`))
        })
        waiting.add(check)
        check()
      }),
  }
}
