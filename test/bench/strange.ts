import { createRandom, type Random } from './random.ts'
import { benchStartMs, drawPoisson, withOffspring } from './traces.ts'
import { daily, heaps, type Kind, marked, market, spread } from './unfriendly.ts'

/** More histories that a plan can lose on: surprises of any size and place, and feeds with another shape than a day's. */

const dayMs = 86_400_000
const hourMs = 3_600_000
const minuteMs = 60_000

export const strangeKinds: Readonly<Record<string, Kind>> = {
  'a giant day at a random time': (seed, days) => {
    const random = createRandom(seed * 101 + 3)
    const giant = { day: 8 + Math.floor(random.next() * (days - 10)), hour: random.next() * 20 }
    return daily((rate, day) => {
      spread(rate, day, 9, 4, 20)
      if (day === giant.day) spread(rate, day, giant.hour, 4, 6_000)
    })(seed, days)
  },
  'a giant day after its session': daily((rate, day) => {
    spread(rate, day, 9, 3.5, 200)
    if (day === 30) spread(rate, day, 17, 6, 8_000)
  }),
  'a giant day from midnight to midnight': daily((rate, day) => {
    spread(rate, day, 9, 3.5, 60)
    if (day === 27) spread(rate, day, 0, 24, 5_000)
  }),
  'twenty thousand alerts within two hours, just after a session': daily((rate, day) => {
    spread(rate, day, 9, 3.5, 150)
    spread(rate, day, 0, 24, 20)
    if (day === 25) spread(rate, day, 13, 2, 20_000)
  }),
  'twenty thousand alerts within six hours of the evening, after a session': daily((rate, day) => {
    spread(rate, day, 9, 3.5, 150)
    spread(rate, day, 0, 24, 20)
    if (day === 25) spread(rate, day, 17, 6, 20_000)
  }),
  'two minutes of a thousand alerts, once a week at any time': (seed, days) => {
    const random = createRandom(seed * 59 + 3)
    const storms: number[] = []
    for (let week = 0; week < days / 7; week++) {
      const at = benchStartMs + (week + random.next()) * 7 * dayMs
      for (let k = 0; k < 1_000; k++) storms.push(Math.floor(at + random.next() * 2 * minuteMs))
    }
    return merged(market(seed, days, 100), storms)
  },
  'batches of any size (Pareto), at any time': (seed, days) => {
    const random = createRandom(seed * 61 + 3)
    return heaps(anyTime(random, days, 8), () => pareto(random), 1_000, random)
  },
  'batches of any size (Pareto), in a session': (seed, days) => {
    const random = createRandom(seed * 67 + 3)
    const rate = new Float64Array(days * 1_440)
    for (let day = 0; day < days; day++) {
      spread(rate, day, 9, 3.5, 15)
      spread(rate, day, 0, 24, 3)
    }
    return heaps(drawPoisson(rate, benchStartMs, random), () => pareto(random), 1_000, random)
  },
  'a session, and a batch of a hundred each night': (seed, days) => {
    const random = createRandom(seed * 71 + 3)
    const nights = Array.from(
      { length: days },
      (_, day) => benchStartMs + day * dayMs + random.next() * 7 * hourMs,
    )
    return merged(
      market(seed, days, 100),
      heaps(nights, () => 100, 1_000, random),
    )
  },
  'a session that moves to the night for good': daily((rate, day) => {
    spread(rate, day, day < 21 ? 9 : 20.5, 3.5, 150)
  }),
  'five alerts just after a long silence': (seed, days) => {
    const random = createRandom(seed * 73 + 3)
    const times: number[] = []
    for (
      let at = benchStartMs;
      at < benchStartMs + days * dayMs;
      at += 2 * hourMs + random.exponential(hourMs)
    )
      for (let k = 0; k < 5; k++) times.push(Math.floor(at + random.next() * 2 * minuteMs))
    return merged(times, [])
  },
  'always three hours that no day of late used': (seed, days) => {
    const random = createRandom(seed * 79 + 3)
    const rate = new Float64Array(days * 1_440)
    const used: number[] = []
    for (let day = 0; day < days; day++) {
      const free = [0, 1, 2, 3, 4, 5, 6, 7].filter((part) => !used.slice(-5).includes(part))
      const part = free[Math.floor(random.next() * free.length)] ?? 0
      used.push(part)
      spread(rate, day, part * 3, 3, 150)
    }
    return drawPoisson(rate, benchStartMs, random)
  },
  'weekends only': daily((rate, day) => {
    if (day % 7 >= 5) spread(rate, day, 0, 24, 150)
  }),
  'the same two minutes each day': (seed, days) => {
    const random = createRandom(seed * 83 + 3)
    const at = [3.3, 15.7].flatMap((hour) =>
      Array.from({ length: days }, (_, day) => benchStartMs + day * dayMs + hour * hourMs),
    )
    return merged(
      at.map((each) => Math.floor(each + random.next() * minuteMs)),
      [],
    )
  },
  'no pattern, at a level that differs from day to day': daily((rate, day, random) => {
    spread(rate, day, 0, 24, 60 * Math.exp(1.5 * random.normal()))
  }),
  'a session just after the reset': daily((rate, day) => {
    spread(rate, day, 0, 3, 200)
    spread(rate, day, 0, 24, 20)
  }),
  'a session just before the reset': daily((rate, day) => {
    spread(rate, day, 21, 3, 200)
    spread(rate, day, 0, 24, 20)
  }),
  'an alert every 423 s': (seed, days) => {
    const times: number[] = []
    for (let at = benchStartMs + seed * 977; at < benchStartMs + days * dayMs; at += 423_123) times.push(at)
    return times
  },
  'gaps of 25 to 35 minutes': (seed, days) => {
    const random = createRandom(seed * 89 + 3)
    const times: number[] = []
    for (let at = benchStartMs; at < benchStartMs + days * dayMs; at += 1_500_000 + random.next() * 600_000)
      times.push(Math.floor(at))
    return times
  },
  'a level that doubles each week': daily((rate, day) => {
    spread(rate, day, 0, 24, 10 * 2 ** (day / 7))
  }),
  'morning or evening, by chance': daily((rate, day, random) => {
    spread(rate, day, random.next() < 0.5 ? 9 : 18, 3.5, 200)
  }),
  'alerts that foretell nearly as many for a quarter of an hour': (seed, days) => {
    const random = createRandom(seed * 97 + 3)
    const rate = new Float64Array(days * 1_440).fill(10 / 86_400)
    return withOffspring(
      drawPoisson(rate, benchStartMs, random),
      0.95,
      900,
      benchStartMs + days * dayMs,
      random,
    )
  },
  'a hundred times as many for two hours a week': daily((rate, day) => {
    spread(rate, day, 0, 24, 48)
    if (day % 7 === 3) spread(rate, day, 2, 2, 400)
    if (day % 7 === 5) spread(rate, day, 20, 3, 600)
  }),
  'a session, and news in some nights': daily((rate, day, random) => {
    spread(rate, day, 9, 3.5, 200)
    if (random.next() < 0.3) spread(rate, day, 0.5, 2, 300)
  }),
  'sessions in a trap: six quiet evenings, then ten times as many': daily((rate, day) => {
    spread(rate, day, 9, 3.5, 100)
    if (day % 7 === 6) spread(rate, day, 19, 3, 1_000)
  }),
  'a session on half of the days, by chance': daily((rate, day, random) => {
    if (random.next() < 0.5) spread(rate, day, 10, 3, 200)
    spread(rate, day, 0, 24, 10)
  }),
  'a day of a market, then a day without pattern': daily((rate, day) => {
    if (day % 2 === 0) spread(rate, day, 9, 3.5, 200)
    else spread(rate, day, 0, 24, 200)
  }),
  'marks that move, among alerts at any time, published late': (seed, days) =>
    marked(
      market(seed, days, 200),
      (at, random) => {
        if (random.next() < 0.4) return at
        const second = Math.floor((at - benchStartMs) / (9 * dayMs)) % 2 === 0 ? 3 : 40
        return Math.floor(at / minuteMs) * minuteMs + second * 1_000 + Math.floor(random.next() * 4_000)
      },
      seed,
    ),
  'marks of five seconds': (seed, days) =>
    marked(market(seed, days, 200), (at) => Math.floor(at / 5_000) * 5_000, seed),
  'marks of five minutes': (seed, days) =>
    marked(market(seed, days, 200), (at) => Math.floor(at / 300_000) * 300_000 + 2_000, seed),
  'marks that walk a second a day': (seed, days) =>
    marked(
      market(seed, days, 200),
      (at, random) => {
        const second = Math.floor((at - benchStartMs) / dayMs) % 60
        return Math.floor(at / minuteMs) * minuteMs + second * 1_000 + Math.floor(random.next() * 1_000)
      },
      seed,
    ),
  'marks of five minutes that drift 1.7 s a day': (seed, days) => {
    const stepMs = 300_000 * (1 + 1.7 / 86_400)
    const place = (at: number, random: Random) =>
      benchStartMs + Math.floor((at - benchStartMs) / stepMs) * stepMs + Math.floor(random.next() * 8_000)
    return marked(anyTime(createRandom(seed * 73 + 3), days, 150), place, seed)
  },
}

function anyTime(random: Random, days: number, perDay: number): number[] {
  const rate = new Float64Array(days * 1_440).fill(perDay / 86_400)
  return drawPoisson(rate, benchStartMs, random)
}

/** At least one, one in a hundred above sixty, a few above a thousand. */
function pareto(random: Random): number {
  return Math.min(3_000, Math.floor((1 - random.next()) ** (-1 / 1.1)))
}

function merged(one: readonly number[], other: readonly number[]): number[] {
  return [...one, ...other].sort((a, b) => a - b)
}
