import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'

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
