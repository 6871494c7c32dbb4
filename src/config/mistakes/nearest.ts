/** The candidate that the writer of `word` probably meant, or undefined when none is near. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > wordCharsMax) return undefined
  const completed = [...candidates].find((candidate) => isStem(word, candidate) || isStem(candidate, word))
  if (completed !== undefined) return completed
  let best: { candidate: string; distance: number } | undefined
  for (const candidate of [...candidates].slice(0, comparedMax)) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (best === undefined || distance < best.distance) best = { candidate, distance }
  }
  if (best === undefined) return undefined
  // One wrong letter in a short word, a third of a long one: with more, a guess is usually wrong.
  const length = Math.max(word.length, best.candidate.length)
  const distanceMax = length < 3 ? 0 : length < 6 ? 1 : Math.max(2, Math.floor(length / 3))
  return best.distance <= distanceMax ? best.candidate : undefined
}

function isStem(stem: string, word: string): boolean {
  return stem.length >= 3 && word.toLowerCase().startsWith(stem.toLowerCase())
}

const wordCharsMax = 100
/** A comparison takes some microseconds, and every word of a long list may be wrong. There are fewer time zones. */
const comparedMax = 700

/** How many insertions, deletions, substitutions and swaps of neighbours turn `a` into `b`. */
export function editDistance(a: string, b: string): number {
  if (a.length > wordCharsMax || b.length > wordCharsMax) return Math.max(a.length, b.length)
  // The last three rows of the usual table.
  let before = new Uint8Array(b.length + 1)
  let above = Uint8Array.from({ length: b.length + 1 }, (_, column) => column)
  let current = new Uint8Array(b.length + 1)
  for (let row = 1; row <= a.length; row++) {
    current[0] = row
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      let cost = Math.min(at(above, column), at(current, column - 1)) + 1
      cost = Math.min(cost, at(above, column - 1) + (same ? 0 : 1))
      current[column] = swapped ? Math.min(cost, at(before, column - 2) + 1) : cost
    }
    const done = before
    before = above
    above = current
    current = done
  }
  return at(above, b.length)
}

function at(row: Uint8Array, index: number): number {
  return row[index] ?? wordCharsMax
}
