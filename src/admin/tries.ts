/**
 * Counts the wrong tokens of each address; an address that sends many has to wait. The right token is always taken: behind a
 * proxy all operators have one address, and a program with an old token must not lock them out. So the length of the token has to
 * make guessing hopeless; `check-config` warns of one that could be guessed.
 */
export interface Tries {
  /** How long this address has to wait before it may try another token; 0 where it need not. */
  waitMs(address: string): number
  failed(address: string): void
}

const triesMax = 20
const spanMs = 60_000
/** More addresses are not remembered: those that began first are forgotten. */
const addressesMax = 10_000

export function createTries(monotonicMs: () => number): Tries {
  const known = new Map<string, { readonly sinceMs: number; readonly count: number }>()
  const current = (address: string) => {
    const found = known.get(address)
    return found !== undefined && monotonicMs() - found.sinceMs < spanMs ? found : undefined
  }
  return {
    waitMs(address) {
      const found = current(address)
      return found !== undefined && found.count >= triesMax ? found.sinceMs + spanMs - monotonicMs() : 0
    },
    failed(address) {
      const before = current(address) ?? { sinceMs: monotonicMs(), count: 0 }
      known.delete(address)
      known.set(address, { ...before, count: before.count + 1 })
      const [oldest] = known.keys()
      if (known.size > addressesMax && oldest !== undefined) known.delete(oldest)
    },
  }
}
