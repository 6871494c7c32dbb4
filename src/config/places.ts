import { formatPath, type Path } from './mistake.ts'

/** Where in the file each value of the config stands, and which of them the environment filled. */
export interface Places {
  readonly keys: Map<string, Place>
  readonly values: Map<string, Place>
  readonly filled: Map<string, FilledValue>
}

/** Both from 1. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** A text that came out of variables: how it reads in the file, and their names. */
export interface FilledValue {
  readonly written: string
  readonly variables: readonly string[]
}

export function createPlaces(): Places {
  return { keys: new Map(), values: new Map(), filled: new Map() }
}

/** The place of the key or list entry at `path`, or of the nearest thing around it that is there. */
export function placeOf(places: Places, path: Path): Place | undefined {
  for (let length = path.length; length >= 0; length--) {
    const text = formatPath(path.slice(0, length))
    const place = places.keys.get(text) ?? places.values.get(text)
    if (place !== undefined) return place
  }
  return undefined
}
