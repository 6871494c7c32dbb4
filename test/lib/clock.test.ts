import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { wallClock } from '../support/clock.ts'

const dayMs = 86_400_000

describe('the monotonic clock', () => {
  it('goes on while the wall clock is set back and ahead', () => {
    const clock = wallClock()
    const [wall, before] = [clock.now(), clock.monotonicMs()]
    clock.turn(-dayMs)
    expect(clock.now()).toBeLessThan(wall - dayMs / 2)
    const between = clock.monotonicMs()
    clock.turn(2 * dayMs)
    expect(between).toBeGreaterThanOrEqual(before)
    expect(clock.monotonicMs() - before).toBeLessThan(dayMs / 2)
  })
})

describe('sleep', () => {
  it('rejects at once with the reason when the signal is aborted already', async () => {
    await expect(systemClock.sleep(60_000, AbortSignal.abort('stop'))).rejects.toBe('stop')
  })

  it('ends early when the signal aborts', async () => {
    const controller = new AbortController()
    const sleeping = systemClock.sleep(60_000, controller.signal)
    controller.abort('stop')
    await expect(sleeping).rejects.toBe('stop')
  })

  it('takes times beyond what one timer can hold without firing at once', async () => {
    const controller = new AbortController()
    const sleeping = systemClock.sleep(2 ** 40, controller.signal)
    const first = await Promise.race([sleeping, systemClock.sleep(20).then(() => 'still asleep')])
    controller.abort('stop')
    expect(first).toBe('still asleep')
    await expect(sleeping).rejects.toBe('stop')
  })

  it('treats a negative time as none', async () => {
    await expect(systemClock.sleep(-5)).resolves.toBeUndefined()
  })
})
