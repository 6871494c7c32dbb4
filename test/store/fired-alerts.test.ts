import { expect, it } from 'vitest'
import { createFiredAlerts, type FiredAlert } from '../../src/store/fired-alerts.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()
const everything = { fromMs: -Infinity, throughMs: Infinity }

it.each([1, 2, 3, 7, 100])(
  'of alerts of one instant the largest id is first, in pages of %i',
  async (count) => {
    const fired = createFiredAlerts({ redis: redis.client(), prefix: freshPrefix() })
    const newestFirst = [
      ...[2_101, 2_100, 1_000, 999, 998, 9].map((id) => ({ name: `main.${id}`, atMs: 2_000 })),
      { name: 'main.10000', atMs: 1_500 },
      ...['main.100', 'main.99', 'main.7', 'desk.7', 'main.no-number'].map((name) => ({ name, atMs: 1_000 })),
    ]
    await fired.add(newestFirst)
    const read: FiredAlert[] = []
    for (let last: FiredAlert | undefined; ; last = read.at(-1)) {
      const page = await fired.before(everything, last, count)
      read.push(...page)
      if (page.length < count) break
    }
    expect(read).toEqual(newestFirst)
    for (const [at, each] of newestFirst.entries())
      expect(await fired.before(everything, { ...each, isAgain: true }, 2)).toEqual(
        newestFirst.slice(at, at + 2),
      )
  },
)
