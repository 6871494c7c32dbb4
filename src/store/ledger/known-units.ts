/**
 * The units of budget days that this process knows to be used, by its own calls and those of others, in case Redis loses
 * them. One for a process: sources of one account count in one ledger, and a source whose config changes goes on with its own.
 */
export interface KnownUnits {
  /** By the Redis key of the count. */
  of(key: string): number
  /** At least so many are used of it by now. */
  note(key: string, used: number): void
}

export function createKnownUnits(): KnownUnits {
  const known = new Map<string, number>()
  return {
    of: (key) => known.get(key) ?? 0,
    note(key, used) {
      const most = Math.max(used, known.get(key) ?? 0)
      known.delete(key)
      known.set(key, most)
      const oldest = known.keys().next()
      if (known.size > countsMax && !oldest.done) known.delete(oldest.value)
    },
  }
}

/** The days around a reset, for many accounts. */
const countsMax = 1_000
