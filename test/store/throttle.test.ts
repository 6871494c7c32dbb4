import { describe, expect, it } from 'vitest'
import { createThrottles } from '../../src/store/operators/throttle.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const server = useRedis()
const hourMs = 3_600_000

function throttles(prefix = freshPrefix()) {
  return createThrottles({ redis: server.client(), prefix })
}

function claims(names: readonly string[], perMs = hourMs, window = ['route', 'فولاد']) {
  return names.map((alert) => ({ window, alert, perMs }))
}

describe('a throttle', () => {
  it('lets the first pass and holds the others until the window ends', async () => {
    const beforeMs = Date.now()
    const [first, second, third] = await throttles().claim(claims(['main.1', 'main.2', 'main.3']))
    expect(first).toEqual({ passes: true, heldBack: 0 })
    expect([second, third]).toEqual([
      { passes: false, untilMs: expect.any(Number) },
      { passes: false, untilMs: expect.any(Number) },
    ])
    if (second?.passes === false) expect(second.untilMs - beforeMs).toBeGreaterThanOrEqual(hourMs - 1_000)
  })

  it('keeps windows apart', async () => {
    const own = throttles()
    await own.claim(claims(['main.1']))
    expect(await own.claim(claims(['main.2'], hourMs, ['route', 'خودرو']))).toMatchObject([{ passes: true }])
    expect(await own.claim(claims(['main.3'], hourMs, ['other', 'فولاد']))).toMatchObject([{ passes: true }])
  })

  it('decides the same for the same alert, whoever asks and however often, and counts it once', async () => {
    const prefix = freshPrefix()
    const names = ['main.1', 'main.2', 'main.3']
    const first = await throttles(prefix).claim(claims(names, 300))
    expect(await throttles(prefix).claim(claims(names, 300))).toEqual(first)
    const next = throttles(prefix)
    await until('the window is over', async () => {
      const [answer] = await next.claim(claims([`main.${Math.random()}`], 300))
      return answer?.passes === true && answer.heldBack >= 2
    })
    expect(await next.claim(claims(names, 300))).toEqual(first)
  })

  it('knows which alert passed for longer than its window lasts, however long that is', async () => {
    const prefix = freshPrefix()
    const weekMs = 7 * 24 * hourMs
    await throttles(prefix).claim(claims(['main.1', 'main.2'], weekMs))
    const client = server.client()
    const passed = (await client.keys(`*${prefix}*:main.1`))[0] ?? ''
    expect(await client.pttl(passed)).toBeGreaterThan(weekMs)
  })

  it('tells the next that passes how many were held, and then counts anew', async () => {
    const own = throttles()
    await own.claim(claims(['main.1', 'main.2', 'main.3'], 300))
    const passing: number[] = []
    await until('two more pass', async () => {
      const [answer] = await own.claim(claims([`late.${passing.length}.${Date.now()}`], 300))
      if (answer?.passes) passing.push(answer.heldBack)
      return passing.length === 2
    })
    expect(passing[0]).toBeGreaterThanOrEqual(2)
  })

  it('lets one pass of many that ask at once', async () => {
    const prefix = freshPrefix()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => throttles(prefix).claim(claims([`main.${index}`]))),
    )
    expect(answers.flat().filter(({ passes }) => passes)).toHaveLength(1)
  })
})
