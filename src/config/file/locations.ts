import { formatPath, type Path } from '../mistakes/mistake.ts'

/** Where each value of the config is in the file, and which values come from the environment. */
export interface Locations {
  readonly keys: Map<string, Location>
  readonly values: Map<string, Location>
  readonly filled: Map<string, FilledValue>
}

/** Both are counted from 1. */
export interface Location {
  readonly line: number
  readonly column: number
}

/** A text that contains variables: as it is written in the file, and the names of the variables. */
interface FilledValue {
  readonly written: string
  readonly variables: readonly string[]
}

export function createLocations(): Locations {
  return { keys: new Map(), values: new Map(), filled: new Map() }
}

/** The location of the key or list entry at `path`, or of the nearest one around it that exists. */
export function locationOf(locations: Locations, path: Path): Location | undefined {
  for (let length = path.length; length >= 0; length--) {
    const text = formatPath(path.slice(0, length))
    const location = locations.keys.get(text) ?? locations.values.get(text)
    if (location !== undefined) return location
  }
  return undefined
}
