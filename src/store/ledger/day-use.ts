import type { Purpose } from '../../telemetry/metrics.ts'

/** Units of a day: in all, and by purpose. */
export interface DayUse {
  readonly used: number
  readonly byPurpose: Readonly<Partial<Record<Purpose, number>>>
}

export function numbersOf(fields: readonly (readonly [name: string, count: string])[]): DayUse['byPurpose'] {
  return Object.fromEntries(fields.map(([name, count]) => [name, Number(count)]))
}
