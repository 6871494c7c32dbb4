/** The candidate that `word` was probably meant to be, or undefined when none is near. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const completed = [...candidates].find((candidate) => isStem(word, candidate) || isStem(candidate, word))
  if (completed !== undefined) return completed
  let best: { candidate: string; distance: number } | undefined
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (best === undefined || distance < best.distance) best = { candidate, distance }
  }
  if (best === undefined) return undefined
  // One slip in a short word, a third of a long one: beyond that a guess misleads.
  const length = Math.max(word.length, best.candidate.length)
  const distanceMax = length < 3 ? 0 : length < 6 ? 1 : Math.max(2, Math.floor(length / 3))
  return best.distance <= distanceMax ? best.candidate : undefined
}

function isStem(stem: string, word: string): boolean {
  return stem.length >= 3 && word.toLowerCase().startsWith(stem.toLowerCase())
}

const wordCharsMax = 100

/** Insertions, deletions, substitutions and swaps of neighbours that lead from `a` to `b`. */
export function editDistance(a: string, b: string): number {
  if (a.length > wordCharsMax || b.length > wordCharsMax) return Math.max(a.length, b.length)
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const costs = [
        at(above, column) + 1,
        at(current, column - 1) + 1,
        at(above, column - 1) + (same ? 0 : 1),
        swapped && row > 1 && column > 1 ? at(before, column - 2) + 1 : Number.POSITIVE_INFINITY,
      ]
      current.push(Math.min(...costs))
    }
    before = above
    above = current
  }
  return at(above, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}
