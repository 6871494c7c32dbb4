import { formatPath, type Path } from './mistake.ts'

/** Where in the file each value of the config stands, and which of them the environment filled. */
export interface Locations {
  readonly keys: Map<string, Location>
  readonly values: Map<string, Location>
  readonly filled: Map<string, FilledValue>
}

/** Both from 1. */
export interface Location {
  readonly line: number
  readonly column: number
}

/** A text that came out of variables: how it reads in the file, and their names. */
export interface FilledValue {
  readonly written: string
  readonly variables: readonly string[]
}

export function createLocations(): Locations {
  return { keys: new Map(), values: new Map(), filled: new Map() }
}

/** The location of the key or list entry at `path`, or of the nearest thing around it that is there. */
export function locationOf(locations: Locations, path: Path): Location | undefined {
  for (let length = path.length; length >= 0; length--) {
    const text = formatPath(path.slice(0, length))
    const location = locations.keys.get(text) ?? locations.values.get(text)
    if (location !== undefined) return location
  }
  return undefined
}
