/**
 * What a config makes under its names, each with the fingerprint of the part of the config that it was made of. A reload
 * takes over the units of which the new config says the same, and so leaves them alone.
 */
export type BuiltParts<T> = ReadonlyMap<string, BuiltPart<T>>

export interface BuiltPart<T> {
  readonly fingerprint: string
  readonly value: T
}

export interface PartBuilder<C, T> {
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
      // Before it is built: of a file that changes in between, the next reload sees that it did.
      const mark = fingerprint(name)
      const known = before.get(name)
      return [name, known?.fingerprint === mark ? known : { fingerprint: mark, value: build(name, config) }]
    }),
  )
}

/** What they are, by name. */
export function valuesOf<T>(units: BuiltParts<T>): ReadonlyMap<string, T> {
  return new Map([...units].map(([name, { value: made }]) => [name, made]))
}

export interface Difference {
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** Pure. */
export function differenceOf(before: BuiltParts<unknown>, after: BuiltParts<unknown>): Difference {
  return {
    added: [...after.keys()].filter((name) => !before.has(name)),
    changed: [...after].flatMap(([name, unit]) => {
      const old = before.get(name)
      return old !== undefined && old !== unit ? [name] : []
    }),
    removed: [...before.keys()].filter((name) => !after.has(name)),
  }
}
