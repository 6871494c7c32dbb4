import { describe, expect, it } from 'vitest'
import { cheapest } from '../../src/schedule/pace/solve.ts'
import { createRandom } from '../bench/random.ts'

/** What the cheapest of all series costs that begins with a poll at one point and ends with one at the last, each tried. */
function costOf({ times, alerts, price, shortest, longest }: Choice, from: number): number {
  if (from === times.length - 1) return 0
  const costs = times.map((at, to) => {
    const gap = at - (times[from] ?? 0)
    if (gap < shortest || gap > longest) return Number.POSITIVE_INFINITY
    return costUntil({ times, alerts, price, shortest, longest }, from, to)
  })
  return Math.min(...costs)
}

/** The same for series whose first poll is at `to`. */
function costUntil(choice: Choice, from: number, to: number): number {
  const { times, alerts, price } = choice
  let waiting = 0
  for (let point = from + 1; point <= to; point++)
    waiting += (alerts[point] ?? 0) * ((times[to] ?? 0) - (times[point] ?? 0))
  return waiting + price + costOf(choice, to)
}

interface Choice {
  readonly times: readonly number[]
  /** Alerts that come at each point. */
  readonly alerts: readonly number[]
  readonly price: number
  readonly shortest: number
  readonly longest: number
}

function anyChoice(random: { next(): number }): Choice {
  const times = [0]
  while (times.length < 12) times.push((times.at(-1) ?? 0) + 1 + Math.floor(4 * random.next()))
  const alerts = times.map(() => (random.next() < 0.4 ? random.next() : 0.01))
  return {
    ...{ times, alerts },
    price: random.next(),
    shortest: 1 + 3 * random.next(),
    longest: 8 + 8 * random.next(),
  }
}

describe('the first of a series of polls', () => {
  it('is that of a series that costs no more than any other within the shortest and the longest gap', () => {
    const random = createRandom(7)
    for (let round = 0; round < 300; round++) {
      const choice = anyChoice(random)
      const { times, alerts, price, shortest, longest } = choice
      const masses = alerts.map((_, point) => alerts.slice(0, point + 1).reduce((sum, each) => sum + each))
      const first = times.indexOf(cheapest({ times: [...times], masses }, price, shortest, longest))
      expect(times[first]).toBeGreaterThanOrEqual(shortest)
      expect(times[first]).toBeLessThanOrEqual(longest)
      expect(costUntil(choice, 0, first)).toBeCloseTo(costOf(choice, 0), 9)
    }
  })
})
