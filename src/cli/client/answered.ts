let place: string | undefined

/**
 * Where the last answer of a bridge came from. A command that fails after it, by no fault of the system, could not read it: what
 * says that it is a bridge may be none, or of another version.
 */
export function noteAnswer(base: string | undefined): void {
  place = base
}

/** Absent while no bridge has answered. */
export function oddAnswerText(): string | undefined {
  if (place === undefined) return undefined
  return `What answers at ${place} is no bridge of this version; is --url (or --config) right?`
}
