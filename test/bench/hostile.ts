import { createRandom, type Random } from './random.ts'
import { benchStartMs, drawPoisson } from './traces.ts'
import { daily, heaps, type Kind, marked, market, spread } from './unfriendly.ts'

/** Histories by somebody who wants the plan to be worse than a clock: what it has learned turns out wrong, again and again. */

const dayMs = 86_400_000
const hourMs = 3_600_000
const minuteMs = 60_000

export const hostileKinds: Readonly<Record<string, Kind>> = {
  'an hour that changes every week, to where the last weeks had none': (seed, days) => {
    const random = createRandom(seed * 103 + 3)
    const rate = new Float64Array(days * 1_440)
    const hours: number[] = []
    for (let day = 0; day < days; day++) {
      if (day % 7 === 0) hours.push(pick(random, hours.slice(-4)))
      spread(rate, day, hours.at(-1) ?? 0, 1, 200)
    }
    return drawPoisson(rate, benchStartMs, random)
  },
  'a day of a session, then a day of everything else': daily((rate, day) => {
    if (day % 2 === 0) spread(rate, day, 9, 3, 200)
    else {
      spread(rate, day, 0, 9, 100)
      spread(rate, day, 12, 12, 100)
    }
  }),
  'batches just after or just before the polls of a clock of 2,000': (seed, days) => {
    const random = createRandom(seed * 107 + 3)
    const gapMs = dayMs / 2_000
    const starts = Array.from({ length: days * 20 }, () => {
      const poll = Math.floor(random.next() * days * 2_000)
      return benchStartMs + (poll + 0.5) * gapMs + (random.next() < 0.5 ? 50 : -1_000)
    })
    return heaps(
      starts.sort((a, b) => a - b),
      () => 10,
      500,
      random,
    )
  },
  'hours that follow the moon, and another session for a month': daily((rate, day) => {
    const sunset = 17 + (day * 1.5) / 60
    const isFasting = day >= 14 && day < 44
    spread(rate, day, isFasting ? 10 : 9, isFasting ? 2.5 : 3.5, 120)
    if (isFasting) spread(rate, day, sunset + 2, 2, 80)
    spread(rate, day, (day * 50) / 60, 1, 30)
  }),
  'holidays without notice, and twice as much on the day after': (seed, days) => {
    let isAfter = false
    return daily((rate, day, random) => {
      const isHoliday = random.next() < 0.2 || (day % 21 >= 15 && day % 21 < 19)
      if (!isHoliday) spread(rate, day, 9, 3.5, isAfter ? 400 : 200)
      spread(rate, day, 0, 24, 6)
      isAfter = isHoliday
    })(seed, days)
  },
  'two sessions, and a lunch break that moves': daily((rate, day, random) => {
    const lunch = 11 + 2.5 * random.next()
    spread(rate, day, 9, lunch - 9, 100)
    spread(rate, day, lunch + 1, 16 - lunch - 1, 100)
  }),
  'a week of silence, then two thousand within half an hour': (seed, days) => {
    const random = createRandom(seed * 109 + 3)
    const rate = new Float64Array(days * 1_440)
    for (let day = 0; day < days; day += 7) spread(rate, day + 6 * random.next(), 0, 0.5, 2_000)
    return drawPoisson(rate, benchStartMs, random)
  },
  'ten times as many each week': daily((rate, day) => {
    spread(rate, day, 0, 24, 0.05 * 10 ** (day / 7))
  }),
  'marks of half a minute, published up to fifty seconds late': (seed, days) =>
    marked(
      market(seed, days, 200),
      (at, random) => Math.floor(at / 30_000) * 30_000 + Math.floor(random.next() * 50_000),
      seed,
    ),
  'all of a day in its first hour or in its last, by chance': daily((rate, day, random) => {
    spread(rate, day, random.next() < 0.5 ? 0 : 23, 1, 200)
  }),
  'an alert, and a batch of fifty half an hour later': (seed, days) => {
    const random = createRandom(seed * 113 + 3)
    const times: number[] = []
    for (
      let at = benchStartMs;
      at < benchStartMs + days * dayMs - hourMs;
      at += random.exponential(4 * hourMs)
    ) {
      times.push(Math.floor(at))
      const batchMs = at + 31 * minuteMs + random.next() * minuteMs
      for (let k = 0; k < 50; k++) times.push(Math.floor(batchMs + random.next() * 1_000))
    }
    return sorted(times)
  },
  'a session for three weeks, then its hours are the only silent ones': daily((rate, day) => {
    if (day < 21) spread(rate, day, 9, 4, 200)
    else {
      spread(rate, day, 0, 9, 120)
      spread(rate, day, 13, 11, 120)
    }
  }),
  'a quiet session, and a heap of three hundred in the night after it': (seed, days) => {
    const random = createRandom(seed * 127 + 3)
    const nights = Array.from({ length: Math.ceil(days / 3) }, (_, k) => {
      return (
        benchStartMs + (3 * k + Math.floor(random.next() * 3)) * dayMs + (19 + 4 * random.next()) * hourMs
      )
    })
    return sorted([...market(seed, days, 60), ...heaps(nights, () => 300, 5 * minuteMs, random)]).filter(
      (at) => at < benchStartMs + days * dayMs,
    )
  },
  'an alert every seven minutes by day, on the minute by night': (seed, days) =>
    marked(
      daily((rate, day) => spread(rate, day, 0, 24, 200))(seed, days),
      (at) => {
        const hour = ((at - benchStartMs) % dayMs) / hourMs
        return hour < 12 ? Math.floor(at / 420_000) * 420_000 + 97_000 : Math.floor(at / minuteMs) * minuteMs
      },
      seed,
    ),
  'a hundred alerts at the very reset': (seed, days) => {
    const random = createRandom(seed * 131 + 3)
    const resets = Array.from({ length: days }, (_, day) => benchStartMs + day * dayMs)
    return sorted([...market(seed, days, 50), ...heaps(resets, () => 100, 2_000, random)])
  },
  'lively weeks and dead ones, by chance': (seed, days) => {
    let isLively = true
    return daily((rate, day, random) => {
      if (day % 7 === 0) isLively = random.next() < 0.5
      spread(rate, day, 10 + 4 * random.next(), 3, isLively ? 400 : 4)
    })(seed, days)
  },
}

/** An hour of the day that is none of these. */
function pick(random: Random, used: readonly number[]): number {
  const free = Array.from({ length: 24 }, (_, hour) => hour).filter((hour) => !used.includes(hour))
  return free[Math.floor(random.next() * free.length)] ?? 0
}

function sorted(times: readonly number[]): number[] {
  return times.toSorted((a, b) => a - b)
}
