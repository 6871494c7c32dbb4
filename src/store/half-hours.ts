/** In the hash of a day's units: `half:<half hours since the epoch>` → units, by the clock of the caller. */

const fieldRoot = 'half:'
export const halfHourMs = 1_800_000

export function halfHourField(atMs: number): string {
  return `${fieldRoot}${Math.floor(atMs / halfHourMs)}`
}

/** Number of the half hour → units. */
export function unitsByHalfHour(counts: readonly Readonly<Record<string, string>>[]): Map<number, number> {
  const units = new Map<number, number>()
  for (const [name, count] of counts.flatMap(Object.entries<string>)) {
    if (!name.startsWith(fieldRoot)) continue
    const half = Number(name.slice(fieldRoot.length))
    units.set(half, (units.get(half) ?? 0) + Number(count))
  }
  return units
}
