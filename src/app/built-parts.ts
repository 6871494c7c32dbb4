/**
 * What is built from a config, by name, each with the fingerprint of its part of the config. A reload keeps the parts
 * whose fingerprint is the same.
 */
export type BuiltParts<T> = ReadonlyMap<string, BuiltPart<T>>

interface BuiltPart<T> {
  readonly fingerprint: string
  readonly value: T
}

interface PartBuilder<C, T> {
  fingerprint(name: string): string
  build(name: string, config: C): T
}

/** Throws what `build` throws; nothing of `before` is touched. */
export function buildParts<C, T>(
  configs: Iterable<readonly [string, C]>,
  before: BuiltParts<T>,
  { fingerprint, build }: PartBuilder<C, T>,
): BuiltParts<T> {
  return new Map(
    [...configs].map(([name, config]) => {
      // Computed before the part is built: when a file changes in between, the next reload notices it.
      const current = fingerprint(name)
      const known = before.get(name)
      return [
        name,
        known?.fingerprint === current ? known : { fingerprint: current, value: build(name, config) },
      ]
    }),
  )
}

export function valuesOf<T>(parts: BuiltParts<T>): ReadonlyMap<string, T> {
  return new Map([...parts].map(([name, { value }]) => [name, value]))
}

export interface PartsDifference {
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** Pure. */
export function differenceOf(before: BuiltParts<unknown>, after: BuiltParts<unknown>): PartsDifference {
  return {
    added: [...after.keys()].filter((name) => !before.has(name)),
    changed: [...after].flatMap(([name, part]) => {
      const old = before.get(name)
      return old !== undefined && old !== part ? [name] : []
    }),
    removed: [...before.keys()].filter((name) => !after.has(name)),
  }
}
