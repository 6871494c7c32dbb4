/** The units of a budget day that this process knows to be used, by its own calls and those of others, in case Redis loses them. */
export interface KnownUnits {
  of(dayKey: string): number
  /** At least so many are used of it by now. */
  note(dayKey: string, used: number): void
}

export function createKnownUnits(): KnownUnits {
  const known = new Map<string, number>()
  return {
    of: (dayKey) => known.get(dayKey) ?? 0,
    note(dayKey, used) {
      const most = Math.max(used, known.get(dayKey) ?? 0)
      known.delete(dayKey)
      known.set(dayKey, most)
      const oldest = known.keys().next()
      if (known.size > daysMax && !oldest.done) known.delete(oldest.value)
    },
  }
}

/** The days around a reset, and some more for a clock that is set. */
const daysMax = 4
