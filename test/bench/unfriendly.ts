import { createRandom, type Random } from './random.ts'
import { benchStartMs, drawPoisson, withOffspring } from './traces.ts'

/**
 * Histories that a plan which learns can lose on: batches, sessions that move, few alerts, marks that move. Each is a
 * function of the seed and the number of days; nothing here was fitted to a real feed.
 */
export type Kind = (seed: number, days: number) => number[]

const minutes = 1_440
const dayMs = 86_400_000

/** Kinds that constants were tuned on. */
export const tunedKinds: Readonly<Record<string, Kind>> = {
  'thirty alerts within a second, once an hour': batches(24, 30, 500, true),
  'five batches of forty a day': batches(5, 40, 2_000, false),
  'a two-hour window that drifts half an hour a day': daily((rate, day) =>
    spread(rate, day, (day * 0.5) % 24, 2, 200),
  ),
  'a two-hour window at a random hour': daily((rate, day, random) =>
    spread(rate, day, random.next() * 24, 2, 200),
  ),
  'month ends': daily((rate, day) => {
    spread(rate, day, 0, 24, 20)
    if (day % 30 >= 28) spread(rate, day, 9, 12, 1_500)
  }),
  'six alerts a day, at any time': daily((rate, day) => spread(rate, day, 0, 24, 6)),
  'a market of screens': (seed, days) => {
    const random = createRandom(seed * 31 + 7)
    const rate = new Float64Array(days * minutes)
    for (let day = 0; day < days; day++) {
      if (day % 7 < 5) {
        spread(rate, day, 9, 3.5, 14)
        spread(rate, day, 15, 4, 3)
      }
      spread(rate, day, 0, 24, 1)
    }
    return heaps(
      drawPoisson(rate, benchStartMs, random),
      () => 1 + Math.floor(random.exponential(20)),
      500,
      random,
    )
  },
  'a rate that walks at random': (seed, days) => {
    const random = createRandom(seed * 37 + 5)
    const rate = new Float64Array(days * minutes)
    let level = 0
    for (let at = 0; at < rate.length; at++) {
      if (at % 10 === 0) level = Math.max(-2.5, Math.min(2.5, level + 0.15 * random.normal()))
      rate[at] = (100 / 86_400) * Math.exp(level)
    }
    return drawPoisson(rate, benchStartMs, random)
  },
  'weeks that alternate between morning and evening': daily((rate, day) =>
    spread(rate, day, Math.floor(day / 7) % 2 === 0 ? 9 : 18, 3.5, 200),
  ),
  'no pattern, fifty a day': daily((rate, day) => spread(rate, day, 0, 24, 50)),
  'one giant day': daily((rate, day) => {
    spread(rate, day, 9, 4, 20)
    if (day === 25) spread(rate, day, 13, 4, 6_000)
  }),
  'marks that move in mid-run': (seed, days) =>
    marked(
      market(seed, days, 200),
      (at, random) => {
        const second = at < benchStartMs + (days / 2) * dayMs ? 5 : 35
        return Math.floor(at / 60_000) * 60_000 + second * 1_000 + Math.floor(random.next() * 1_500)
      },
      seed,
    ),
}

/** Kinds that were looked at only when all was tuned. */
export const heldOutKinds: Readonly<Record<string, Kind>> = {
  'a session that vanishes': daily((rate, day) => {
    spread(rate, day, 0, 24, 30)
    if (day < 21) spread(rate, day, 9, 3.5, 200)
  }),
  'a batch of sixty at a random quarter hour, a third of the days': (seed, days) => {
    const random = createRandom(seed * 41 + 3)
    const at: number[] = []
    for (let day = 0; day < days; day++) {
      for (let k = random.poisson(4); k > 0; k--) at.push(benchStartMs + (day + random.next()) * dayMs)
      if (random.next() < 0.33) at.push(benchStartMs + day * dayMs + Math.floor(random.next() * 96) * 900_000)
    }
    at.sort((a, b) => a - b)
    return heaps(at, () => (random.next() < 0.2 ? 60 : 1), 800, random)
  },
  'two alerts a day, at any time': daily((rate, day) => spread(rate, day, 0, 24, 2)),
  'mornings and evenings by turns': daily((rate, day) => spread(rate, day, day % 2 === 0 ? 9 : 18, 3.5, 200)),
  'alerts on the minute among as many at any time, published late': (seed, days) =>
    marked(
      market(seed, days, 200),
      (at, random) => {
        if (random.next() < 0.5) return at
        return Math.floor(at / 60_000) * 60_000 + Math.floor(random.next() * 6_000)
      },
      seed,
    ),
  'alerts that foretell others for an hour': (seed, days) => {
    const random = createRandom(seed * 43 + 9)
    const rate = new Float64Array(days * minutes).fill(10 / 86_400)
    return withOffspring(
      drawPoisson(rate, benchStartMs, random),
      0.9,
      1_200,
      benchStartMs + days * dayMs,
      random,
    )
  },
  'a burst of ten within a minute, then an hour of silence': (seed, days) => {
    const random = createRandom(seed * 47 + 1)
    const times: number[] = []
    for (
      let at = benchStartMs;
      at < benchStartMs + days * dayMs;
      at += 3_600_000 + random.exponential(3_600_000)
    )
      for (let k = 0; k < 10; k++) times.push(Math.floor(at + random.next() * 60_000))
    return times.filter((at) => at < benchStartMs + days * dayMs).sort((a, b) => a - b)
  },
  'fridays only': daily((rate, day) => {
    spread(rate, day, 0, 24, 3)
    if (day % 7 === 6) spread(rate, day, 10, 5, 400)
  }),
}

export function daily(fill: (rate: Float64Array, day: number, random: Random) => void): Kind {
  return (seed, days) => {
    const random = createRandom(seed * 29 + 11)
    const rate = new Float64Array(days * minutes)
    for (let day = 0; day < days; day++) fill(rate, day, random)
    return drawPoisson(rate, benchStartMs, random)
  }
}

/** `count` batches a day of `size` alerts within `withinMs`; one in each equal part of the day, or at any time. */
function batches(count: number, size: number, withinMs: number, oneInEach: boolean): Kind {
  return (seed, days) => {
    const random = createRandom(seed * 23 + 13)
    const at = Array.from({ length: days * count }, (_, k) =>
      oneInEach
        ? benchStartMs + ((k + random.next()) * dayMs) / count
        : benchStartMs + (Math.floor(k / count) + random.next()) * dayMs,
    )
    return heaps(
      at.sort((a, b) => a - b),
      () => size,
      withinMs,
      random,
    )
  }
}

export function heaps(
  starts: readonly number[],
  size: () => number,
  withinMs: number,
  random: Random,
): number[] {
  return starts
    .flatMap((at) => Array.from({ length: size() }, () => Math.floor(at + random.next() * withinMs)))
    .sort((a, b) => a - b)
}

export function market(seed: number, days: number, alerts: number): number[] {
  return daily((rate, day) => {
    if (day % 7 < 5) spread(rate, day, 9, 3.5, 0.7 * alerts)
    spread(rate, day, 15, 4, 0.2 * alerts)
    spread(rate, day, 0, 24, 0.1 * alerts)
  })(seed, days)
}

export function marked(
  times: readonly number[],
  place: (at: number, random: Random) => number,
  seed: number,
): number[] {
  const random = createRandom(seed * 53 + 17)
  return times.map((at) => place(at, random)).sort((a, b) => a - b)
}

/** Adds `alerts` over `hours` from an hour of the day on, which may run into the next one. */
export function spread(
  rate: Float64Array,
  day: number,
  fromHour: number,
  hours: number,
  alerts: number,
): void {
  const from = Math.round((day * 24 + fromHour) * 60)
  const length = Math.round(hours * 60)
  for (let at = from; at < Math.min(rate.length, from + length); at++)
    rate[at] = (rate[at] ?? 0) + alerts / length / 60
}
