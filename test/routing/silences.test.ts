import { describe, expect, it } from 'vitest'
import { createSilenceReader } from '../../src/routing/silences.ts'
import { silencesKey } from '../../src/store/operator-keys.ts'
import { createSilenceStore } from '../../src/store/operators/silences.ts'
import { clockAt } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, startRedis, useRedis } from '../support/redis.ts'
import { nowMs } from './alerts.ts'

const server = useRedis()
const silence = { match: {}, startsAtMs: nowMs, endsAtMs: nowMs + 60_000, comment: '' }

describe('the silences that intake sees', () => {
  it('are those of the moment: one that was just set holds back, one that was just ended does not', async () => {
    const store = createSilenceStore({ redis: server.client(), prefix: freshPrefix() })
    const read = createSilenceReader({ store, clock: clockAt(() => nowMs), log: captureLog().log })
    expect(await read()).toEqual([])
    const { id } = await store.add(silence, nowMs)
    expect(await read()).toHaveLength(1)
    await store.expire(id)
    expect(await read()).toEqual([])
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
    const read = createSilenceReader({ store, clock, log: captured.log })
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
    const read = createSilenceReader({ store, clock, log: captured.log, timeoutMs: 100 })
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
