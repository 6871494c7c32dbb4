import { describe, expect, it } from 'vitest'
import { createSilenceReader } from '../../src/routing/silences.ts'
import { silencesKey } from '../../src/store/operator-keys.ts'
import { createSilenceStore } from '../../src/store/operators/silences.ts'
import { clockAt } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, startRedis, useRedis } from '../support/redis.ts'
import { nowMs } from './alerts.ts'

const server = useRedis()
const dayMs = 86_400_000
const silence = { match: {}, startsAtMs: nowMs, endsAtMs: nowMs + 60_000, comment: '' }

describe('the silences that intake sees', () => {
  it('are at most a few seconds old', async () => {
    const store = createSilenceStore({ redis: server.client(), prefix: freshPrefix() })
    const time = { nowMs }
    const clock = clockAt(() => time.nowMs)
    const read = createSilenceReader({ store, clock, log: captureLog().log, cacheMs: 2_000 })
    expect(await read()).toEqual([])
    await store.add(silence, nowMs)
    time.nowMs += 1_999
    expect(await read()).toEqual([])
    time.nowMs += 1
    expect(await read()).toHaveLength(1)
  })

  it.each([-dayMs, dayMs])('are so also when the wall clock is set by %d ms', async (byMs) => {
    const store = createSilenceStore({ redis: server.client(), prefix: freshPrefix() })
    const time = { nowMs, wallAheadMs: 0 }
    const clock = { ...clockAt(() => time.nowMs), now: () => time.nowMs + time.wallAheadMs }
    const read = createSilenceReader({ store, clock, log: captureLog().log, cacheMs: 2_000 })
    expect(await read()).toEqual([])
    await store.add({ ...silence, startsAtMs: nowMs - 2 * dayMs, endsAtMs: nowMs + 2 * dayMs }, nowMs)
    time.wallAheadMs = byMs
    expect(await read()).toEqual([])
    time.nowMs += 2_000
    expect(await read()).toHaveLength(1)
  })

  it('are without those that this version refuses, of which it logs once', async () => {
    const [redis, prefix] = [server.client(), freshPrefix()]
    const store = createSilenceStore({ redis, prefix })
    await store.add(silence, nowMs)
    const older = { v: 1, ...silence, match: { headline: { regex: '(a|b){400}' } } }
    await redis.hset(silencesKey(prefix), 'older', JSON.stringify(older))
    await redis.hset(silencesKey(prefix), 'later', JSON.stringify({ ...silence, v: 2 }))
    const captured = captureLog()
    const clock = clockAt(() => nowMs)
    const read = createSilenceReader({ store, clock, log: captured.log, cacheMs: 0 })
    expect([(await read()).length, (await read()).length]).toEqual([1, 1])
    expect(captured.lines.filter(({ silence: id }) => id === 'later')).toMatchObject([
      { msg: expect.stringContaining('a later version') },
    ])
    expect(captured.lines.filter(({ silence: id }) => id === 'older')).toMatchObject([
      { msg: expect.stringContaining('holds nothing back') },
    ])
  })

  it('are those last known while Redis does not answer, within a limit and told once', async () => {
    const own = await startRedis()
    const store = createSilenceStore({ redis: own.client(), prefix: freshPrefix() })
    await store.add(silence, nowMs)
    const captured = captureLog()
    const clock = clockAt(() => nowMs)
    const read = createSilenceReader({ store, clock, log: captured.log, cacheMs: 0, timeoutMs: 100 })
    expect(await read()).toHaveLength(1)
    own.freeze()
    const started = performance.now()
    expect([await read(), await read()].map(({ length }) => length)).toEqual([1, 1])
    expect(performance.now() - started).toBeLessThan(2_000)
    expect(captured.lines.filter(({ msg }) => msg.includes('silences'))).toHaveLength(1)
    own.thaw()
    await own.dispose()
  })
})
