import { Redis } from 'ioredis'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { Secret } from '../../src/lib/secret.ts'
import {
  closeRedis,
  connectRedis,
  faultOf,
  type RedisClient,
  type RedisProfile,
  type RedisTarget,
  waitForRedis,
} from '../../src/store/connection/redis.ts'
import { isRedisAway, redisErrorText } from '../../src/store/connection/redis-errors.ts'
import { describeTarget, parseAddress, reconnectDelayMs } from '../../src/store/connection/redis-options.ts'
import { type CapturedLog, captureLog } from '../support/log.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

const soon = { timeout: 8_000, interval: 20 }

describe('addresses', () => {
  it.each([
    ['redis://cache', { host: 'cache', port: 6379 }],
    [
      'redis://user:p%40ss@cache:6380/2',
      { host: 'cache', port: 6380, username: 'user', password: 'p@ss', db: 2 },
    ],
    [
      'rediss://:pw@cache:1',
      { host: 'cache', port: 1, password: 'pw', tls: { rejectUnauthorized: true, servername: 'cache' } },
    ],
    ['rediss://10.0.0.5', { host: '10.0.0.5', port: 6379, tls: { rejectUnauthorized: true } }],
    ['redis://[::1]:7000', { host: '::1', port: 7000 }],
    ['unix:///run/redis.sock', { path: '/run/redis.sock' }],
    ['unix://:pw@/run/my%20redis.sock?db=3', { path: '/run/my redis.sock', password: 'pw', db: 3 }],
  ])('%s is understood', (url, address) => {
    expect(parseAddress(url)).toEqual(address)
    expect(parseAddress(new Secret(url))).toEqual(address)
  })

  it.each([
    'cache:6379',
    'http://cache',
    'redis://:hunter2@',
    'redis://:hunter2@cache/x',
    'redis://:hunter2%zz@cache',
    'unix://:hunter2%ff@/run/redis.sock',
    'unix://cache/x',
    'unix:',
    'redis://:hunter2@cache/?db=3',
    'unix://:hunter2@/run/redis.sock?db=1&timeout=5',
  ])('%s is refused in a sentence that repeats nothing of it', (url) => {
    expect(() => parseAddress(url)).toThrow(/must look like/)
    expect(() => parseAddress(url)).not.toThrow(/hunter2/)
  })

  it('are shown without credentials', () => {
    expect(describeTarget({ url: 'rediss://user:hunter2@cache:6380/1' })).toBe('cache:6380')
    expect(describeTarget({ cluster: ['redis://:hunter2@a:1', 'redis://b:2'] })).toBe('a:1, b:2')
    const sentinels = [
      { host: 's1', port: 26_379 },
      { host: '::1', port: 5_000 },
    ]
    expect(describeTarget({ sentinels, name: 'main', password: new Secret('hunter2') })).toBe(
      'sentinels s1:26379, [::1]:5000 (main)',
    )
  })

  it.each([
    [['redis://:hunter2@a', 'redis://b/3'], /database 0 alone/],
    [['redis://:hunter2@a', 'rediss://b'], /redis:\/\/ in all addresses/],
  ])('%s are no cluster', (cluster, problem) => {
    expect(() => connectRedis({ target: { cluster }, profile: 'commands' }, captureLog().log)).toThrow(
      problem,
    )
  })
})

/** How a server before Redis 7 wraps what it refuses within a script. */
const wrapped = (reply: string) =>
  `ERR Error running script (call to f_${'0'.repeat(40)}): @user_script:4: @user_script: 4: -${reply}`

describe('connections', () => {
  it('that fail fast reject at once while Redis is away, and work again by themselves', async () => {
    const { server, redis } = await given('commands')
    await redis.set('key', 'value')
    await server.kill9()
    await vi.waitFor(() => expect(redis.status).not.toBe('ready'), soon)
    const before = performance.now()
    const error = await redis.get('key').catch((thrown: unknown) => thrown)
    expect(isRedisAway(error)).toBe(true)
    expect(performance.now() - before).toBeLessThan(1_000)
    await server.start()
    await vi.waitFor(async () => expect(await redis.get('key')).toBeNull(), soon)
  })

  it('of a Redis 6.2 that became a replica are made anew, too, where a script was refused', async () => {
    const { redis } = await given('commands')
    const id = await redis.call('CLIENT', 'ID')
    const refusal = redis.eval('return redis.error_reply(ARGV[1])', 0, wrapped('READONLY of a replica'))
    await expect(refusal).rejects.toThrow('READONLY')
    await vi.waitFor(async () => expect(await redis.call('CLIENT', 'ID')).not.toBe(id), soon)
  })

  it('that block wait for Redis to come back', async () => {
    const { server, redis } = await given('blocking')
    await server.kill9()
    const answer = redis.set('key', 'value')
    await server.start()
    expect(await answer).toBe('OK')
  })

  it('tell an outage once and its end once, however many attempts lie between', async () => {
    const { server, redis, captured } = await given('commands')
    let attempts = 0
    redis.on('reconnecting', () => {
      attempts += 1
    })
    await server.kill9()
    await vi.waitFor(() => expect(attempts).toBeGreaterThan(3), soon)
    await server.start()
    await vi.waitFor(() => expect(captured.with('Redis is back')).toHaveLength(1), soon)
    expect(captured.with('Redis is away')).toHaveLength(1)
    expect(captured.lines.filter(({ level }) => level !== 'debug')).toHaveLength(2)
  })

  it('send what is asked within a turn by one write', async () => {
    const { redis } = await given('blocking')
    if (!(redis instanceof Redis)) throw new TypeError('expected one server')
    const stream = redis.stream as Required<typeof redis.stream>
    const [one, many] = [vi.spyOn(stream, '_write'), vi.spyOn(stream, '_writev')]
    const keys = Array.from({ length: 100 }, (_, index) => `key ${index}`)
    expect(await Promise.all(keys.map((key) => redis.set(key, key)))).toEqual(keys.map(() => 'OK'))
    expect([one.mock.calls.length, many.mock.calls.length]).toEqual([0, 1])
  })

  it('send again what had not left when they broke', async () => {
    const { redis } = await given('blocking')
    if (!(redis instanceof Redis)) throw new TypeError('expected one server')
    const answers = ['a', 'b', 'c'].map((key) => redis.set(key, 'value'))
    redis.stream.destroy()
    expect(await Promise.all(answers)).toEqual(['OK', 'OK', 'OK'])
    expect(await redis.mget('a', 'b', 'c')).toEqual(['value', 'value', 'value'])
  })

  it('say nothing when we close them', async () => {
    const { redis, captured } = await given('commands')
    await closeRedis(redis)
    expect(redis.status).toBe('end')
    expect(captured.lines).toEqual([])
  })

  it('close within a limit when Redis is away', async () => {
    const { server, redis } = await given('commands')
    await server.kill9()
    const before = performance.now()
    await closeRedis(redis)
    expect(performance.now() - before).toBeLessThan(5_000)
    expect(redis.status).not.toBe('ready')
  })

  it('look for another master when theirs became a replica, and say so meanwhile', async () => {
    const { server, redis } = await given('commands')
    const admin = server.client()
    await admin.replicaof('127.0.0.1', '1')
    const error = await redis.set('key', 'value').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ message: expect.stringMatching(/^READONLY/) })
    expect(isRedisAway(error)).toBe(true)
    await admin.replicaof('NO', 'ONE')
    await vi.waitFor(async () => expect(await redis.set('key', 'value')).toBe('OK'), soon)
  })

  it('that block send what a replica refused again, to the next master', async () => {
    const { server, redis } = await given('blocking')
    const admin = server.client()
    await admin.replicaof('127.0.0.1', '1')
    const set = redis.set('key', 'value')
    await vi.waitFor(() => expect(redis.status).not.toBe('ready'), soon)
    await admin.replicaof('NO', 'ONE')
    expect(await set).toBe('OK')
  })

  it('wait longer and longer, but never long, between attempts', () => {
    const delays = [1, 2, 5, 100].map((attempt) => reconnectDelayMs(attempt))
    expect(delays[0]).toBeLessThan(100)
    expect(Math.max(...delays)).toBeLessThan(3_000)
    expect(delays[3]).toBeGreaterThan(1_500)
  })
})

describe('waiting for Redis', () => {
  it('is over when the connection is made, and not with the next attempt', async () => {
    const server = await startRedis()
    onTestFinished(() => server.dispose())
    const { redis, captured } = connect({ url: server.url }, 'commands')
    const clock = { ...systemClock, sleep: () => new Promise<void>(() => {}) }
    await waitForRedis(redis, { log: captured.log, signal: new AbortController().signal, clock })
    expect(await redis.ping()).toBe('PONG')
  })

  it('says once that it is not there, and resolves when it answers', async () => {
    const server = await startRedis()
    onTestFinished(() => server.dispose())
    await server.stop()
    const { redis, captured } = connect({ url: server.url }, 'commands')
    const waiting = waitForRedis(redis, { log: captured.log, signal: new AbortController().signal })
    await vi.waitFor(() => expect(captured.with('waiting for Redis')).toHaveLength(1), soon)
    await server.start()
    await waiting
    expect(captured.with('waiting for Redis')).toHaveLength(1)
    expect(captured.with('Redis answers')).toHaveLength(1)
  })

  it('says nothing when Redis is there', async () => {
    const { redis, captured } = await given('blocking')
    await waitForRedis(redis, { log: captured.log, signal: new AbortController().signal })
    expect(captured.lines).toEqual([])
  })

  it('ends when it is told to', async () => {
    const { redis, captured } = connect({ url: 'unix:///nowhere/redis.sock' }, 'blocking')
    const abort = new AbortController()
    const waiting = waitForRedis(redis, { log: captured.log, signal: abort.signal })
    abort.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })

  it.each(['redis://:hunter2@', 'redis://someone:hunter2@', 'redis://'])(
    'refuses %s where a password is asked, without printing one',
    async (login) => {
      const server = await startRedis({ flags: ['--requirepass', 'right', '--port', '0'] })
      onTestFinished(() => server.dispose())
      const url = `${login.replace('redis:', 'unix:')}${server.socketPath}`
      const { redis, captured } = connect({ url }, 'commands')
      const waiting = waitForRedis(redis, { log: captured.log, signal: new AbortController().signal })
      await expect(waiting).rejects.toThrow(
        login === 'redis://'
          ? /^Redis asks for a login \(NOAUTH\), and the config has none: set redis\.password, .*username/
          : /Redis refuses this user, password or database: WRONGPASS/,
      )
      expect(captured.text()).not.toMatch(/hunter2|right/)
    },
  )
})

describe('a Redis that was started and loads its file', () => {
  it('is named as one while the bridge runs, once by the log, and used soon after it has loaded', async () => {
    const server = await slowToLoad()
    const { redis, captured } = connect({ url: server.url }, 'commands')
    await vi.waitFor(() => expect(redis.status).toBe('ready'), soon)
    await server.kill9()
    await vi.waitFor(() => expect(faultOf(redis)).toMatch(/ECONNREFUSED|ENOENT/), soon)
    const started = server.start()
    await vi.waitFor(() => expect(faultOf(redis)).toMatch(/^LOADING/), soon)
    await started
    // At first it says that it will take hours.
    await vi.waitFor(() => expect(redis.status).toBe('ready'), { timeout: 3_000, interval: 20 })
    expect(faultOf(redis)).toBeUndefined()
    const said = captured.lines.filter(({ level }) => level !== 'debug').map(({ msg }) => msg)
    expect(said).toEqual(['Redis is away', 'Redis loads its data', 'Redis is back'])
  })

  it('is named as one by a start that waits for it', async () => {
    const server = await slowToLoad()
    await server.kill9()
    const started = server.start()
    const { redis, captured } = connect({ url: server.url }, 'commands')
    const waiting = waitForRedis(redis, { log: captured.log, signal: new AbortController().signal })
    await vi.waitFor(() => expect(faultOf(redis)).toMatch(/^LOADING/), soon)
    await Promise.all([waiting, started])
    expect(faultOf(redis)).toBeUndefined()
  })

  /** Its file has many small values, each of which takes a moment, and a large one at the end. */
  async function slowToLoad(): Promise<RedisServer> {
    const server = await startRedis({ aof: 'always', flags: ['--key-load-delay', '500'] })
    onTestFinished(() => server.dispose())
    const filler = server.client().pipeline()
    // It looks at its connections once in a thousand.
    for (let key = 0; key < 4_000; key += 1) filler.set(`filler:${key}`, 'x')
    await filler.set('large', 'x'.repeat(20_000_000)).exec()
    return server
  }
})

describe('the text of an error', () => {
  it.each(['READONLY of a replica', 'OOM command not allowed', 'MISCONF no disk', 'NOREPLICAS too few'])(
    'is that of the refusal where Redis 6.2 wraps it, as of what a script did: %s',
    async (reply) => {
      const { redis } = await given('commands')
      const error = await redis
        .eval('return redis.error_reply(ARGV[1])', 0, wrapped(reply))
        .catch((thrown: unknown) => thrown)
      expect([isRedisAway(error), redisErrorText(error)]).toEqual([true, reply])
      expect(isRedisAway(new Error(`@user_script: 8: -${reply}`))).toBe(true)
    },
  )

  it('leaves out the arguments that Redis repeats', () => {
    const error = new Error("ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'hunter2'")
    expect(redisErrorText(error)).toBe("ERR unknown command 'HELLO'")
  })

  it('says in plain words that Redis is away, however the driver says it', async () => {
    const { server, redis } = await given('commands')
    await server.kill9()
    const texts = new Set<string>()
    await vi.waitFor(async () => {
      const error = await redis.get('key').catch((thrown: unknown) => thrown)
      texts.add(redisErrorText(error))
      expect(String(error)).toContain('enableOfflineQueue')
    }, soon)
    redis.disconnect()
    texts.add(redisErrorText(await redis.get('key').catch((thrown: unknown) => thrown)))
    expect([...texts]).toEqual(['not connected'])
    expect(redisErrorText(new Error('Command timed out'))).toBe('no answer in time')
  })

  it('does not take a mistake in a command for an outage', async () => {
    const { redis } = await given('commands')
    await redis.set('key', 'text')
    const error = await redis.incr('key').catch((thrown: unknown) => thrown)
    expect(isRedisAway(error)).toBe(false)
  })
})

const opened: RedisClient[] = []
afterEach(() => {
  for (const redis of opened.splice(0)) redis.disconnect()
})

function connect(target: RedisTarget, profile: RedisProfile): { redis: RedisClient; captured: CapturedLog } {
  const captured = captureLog()
  const redis = connectRedis({ target, profile }, captured.log)
  opened.push(redis)
  return { redis, captured }
}

async function given(
  profile: RedisProfile,
): Promise<{ server: RedisServer; redis: RedisClient; captured: CapturedLog }> {
  const server = await startRedis()
  onTestFinished(() => server.dispose())
  const { redis, captured } = connect({ url: server.url }, profile)
  await vi.waitFor(() => expect(redis.status).toBe('ready'), soon)
  return { server, redis, captured }
}
