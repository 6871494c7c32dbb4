import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { admitRedis } from '../../src/app/redis.ts'
import { connectRedis, type RedisClient, waitForRedis } from '../../src/store/connection/redis.ts'
import { checkRedis, findingsOf } from '../../src/store/connection/redis-check.ts'
import { claimFormat, stateFormat } from '../../src/store/connection/state-format.ts'
import { stateFormatKey } from '../../src/store/keys.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, type RedisServer, startRedis } from '../support/redis.ts'

describe('checking Redis', () => {
  it('finds nothing wrong with one that keeps everything', async () => {
    const { redis } = await given(['--appendonly', 'yes'])
    expect(await checkRedis(redis, { prefix: freshPrefix() })).toEqual([])
  })

  it('leaves nothing behind', async () => {
    const { redis } = await given()
    await checkRedis(redis, { prefix: freshPrefix() })
    expect(await redis.keys('*')).toEqual([])
  })

  it('waits for nothing', async () => {
    const { redis } = await given()
    const popped = vi.spyOn(redis, 'bzpopmin')
    await checkRedis(redis, { prefix: freshPrefix() })
    expect(await popped.mock.results[0]?.value).not.toBeNull()
  })

  it('refuses one that may throw alerts away, and says what to set', async () => {
    const { redis } = await given(['--maxmemory-policy', 'allkeys-lru'])
    const findings = await checkRedis(redis, { prefix: freshPrefix() })
    expect(findings).toContainEqual({
      level: 'refuse',
      code: 'eviction',
      message: 'Redis may throw away queued alerts: maxmemory-policy is allkeys-lru; set it to noeviction',
    })
  })

  it('warns of one that forgets everything when it crashes', async () => {
    const { redis } = await given()
    const findings = await checkRedis(redis, { prefix: freshPrefix() })
    expect(findings.map(({ level, code }) => ({ level, code }))).toEqual([
      { level: 'warn', code: 'persistence' },
    ])
  })

  it('refuses to start on the state of a later version, and touches nothing of it', async () => {
    const { redis } = await given()
    const options = { prefix: freshPrefix(), log: captureLog().log, signal: AbortSignal.timeout(10_000) }
    const key = stateFormatKey(options.prefix)
    await admitRedis(redis, options)
    expect(await redis.get(key)).toBe(String(stateFormat))
    await admitRedis(redis, options)
    await redis.set(key, stateFormat + 1)
    await expect(admitRedis(redis, options)).rejects.toThrow(
      /^A later version .* in format 3, and this one reads formats up to 2; run that version again, or give this one a redis\.prefix of its own$/,
    )
    expect([await redis.get(key), await redis.keys('*')]).toEqual([String(stateFormat + 1), [key]])
    // A later version raises it, whatever stood there.
    expect(await claimFormat(redis, options.prefix, 3)).toEqual([])
    expect(await redis.get(key)).toBe('3')
  })

  it.each([
    ['-eval', /EVAL/],
    ['-xadd', /XADD/],
    ['-bzpopmin', /BZPOPMIN/],
  ])('names what the user may not do: %s', async (rule, named) => {
    const { server } = await given()
    await server.client().acl('SETUSER', 'bridge', 'on', '>hunter2', '~*', '&*', '+@all', rule)
    const redis = await connected(`unix://bridge:hunter2@${server.socketPath}`)
    const [finding] = await checkRedis(redis, { prefix: freshPrefix() })
    expect(finding).toMatchObject({
      level: 'refuse',
      code: 'permission',
      message: expect.stringMatching(named),
    })
    expect(finding?.message).not.toContain('hunter2')
  })

  it('does without INFO where that is forbidden, and says what it could not see', async () => {
    const { server } = await given()
    await server.client().acl('SETUSER', 'bridge', 'on', '>pw', '~*', '&*', '+@all', '-info')
    const redis = await connected(`unix://bridge:pw@${server.socketPath}`)
    expect(await checkRedis(redis, { prefix: freshPrefix() })).toMatchObject([
      { level: 'warn', code: 'unknown' },
    ])
  })

  it('warns when our clock and its clock disagree', async () => {
    const { redis } = await given(['--appendonly', 'yes'])
    const findings = await checkRedis(redis, { prefix: freshPrefix(), now: () => Date.now() - 60_000 })
    expect(findings).toMatchObject([{ level: 'warn', code: 'clock' }])
    // A busy machine may let time pass between the two clocks' answers.
    const [, seconds] = /(\d+\.\d) s behind/.exec(findings[0]?.message ?? '') ?? []
    expect(Math.abs(Number(seconds) - 60)).toBeLessThan(10)
  })
})

describe('what INFO tells', () => {
  const good =
    'redis_version:7.2.4\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\nused_memory:10\r\nmaxmemory:0\r\n'

  it.each([
    ['5.0.14', ['version']],
    ['6.0.16', ['version']],
    ['6.2.0', []],
    ['10.1.0', []],
  ])('version %s', (version, codes) => {
    const info = good.replace('7.2.4', version)
    expect(findingsOf(info, 0).map(({ code }) => code)).toEqual(codes)
  })

  it('warns before the memory is full', () => {
    const info = good.replace('used_memory:10', 'used_memory:90').replace('maxmemory:0', 'maxmemory:100')
    expect(findingsOf(info, 0)).toMatchObject([
      { level: 'warn', code: 'memory', message: expect.stringContaining('90 %') },
    ])
  })

  it('does not trust a silence about eviction', () => {
    const info = good.replace('maxmemory_policy:noeviction\r\n', '')
    expect(findingsOf(info, 0)).toMatchObject([{ level: 'warn', code: 'unknown' }])
  })
})

async function given(flags: string[] = []): Promise<{ server: RedisServer; redis: RedisClient }> {
  const server = await startRedis({ flags })
  onTestFinished(() => server.dispose())
  return { server, redis: await connected(server.url) }
}

async function connected(url: string): Promise<RedisClient> {
  const { log } = captureLog()
  const redis = connectRedis({ target: { url }, profile: 'commands' }, log)
  onTestFinished(() => redis.disconnect())
  await waitForRedis(redis, { log, signal: new AbortController().signal })
  return redis
}
