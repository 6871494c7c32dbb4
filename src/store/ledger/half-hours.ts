/** Counts by time: the field `half:<half hours since the epoch>`, by the clock of the caller, of units or of alerts. */

const fieldRoot = 'half:'
export const halfHourMs = 1_800_000

export function halfHourField(atMs: number): string {
  return `${fieldRoot}${Math.floor(atMs / halfHourMs)}`
}

/** Number of the half hour → count. */
export function countsByHalfHour(counts: readonly Readonly<Record<string, string>>[]): Map<number, number> {
  const sums = new Map<number, number>()
  for (const [name, count] of counts.flatMap(Object.entries<string>)) {
    if (!name.startsWith(fieldRoot)) continue
    const half = Number(name.slice(fieldRoot.length))
    sums.set(half, (sums.get(half) ?? 0) + Number(count))
  }
  return sums
}

export function sumSince(halves: ReadonlyMap<number, number>, first: number): number {
  return [...halves].reduce((sum, [half, count]) => sum + (half < first ? 0 : count), 0)
}

/** Of a day that begins within a half hour, the next one. */
export function firstHalfOf(day: { readonly startMs: number }): number {
  return Math.ceil(day.startMs / halfHourMs)
}
