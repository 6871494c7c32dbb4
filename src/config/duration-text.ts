/** Milliseconds as a duration that the config takes: one number, one unit. */
export function asDuration(ms: number): string {
  const units: [number, string][] = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'm'],
    [1_000, 's'],
  ]
  const unit = units.find(([size]) => ms >= size && ms % size === 0)
  return unit ? `${ms / unit[0]}${unit[1]}` : `${ms}ms`
}
