import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { leaseKey } from '../../src/store/keys.ts'
import {
  dropLeases,
  type Lease,
  type LeaseHolder,
  LeaseLost,
  type LeaseOptions,
  leaseRetryMs,
  newTaker,
  tryLease,
} from '../../src/store/source/lease.ts'
import { noting } from '../support/asked.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, startRedis, useRedis } from '../support/redis.ts'

const server = useRedis()
const soon = { timeout: 5_000, interval: 10 }

describe('a lease', () => {
  it('is held by one at a time, and free at once when it is released', async () => {
    const options = given()
    const first = await take(options)
    expect(await tryLease(options)).toBeUndefined()
    await first.release()
    const second = await take(options)
    expect(second.token).not.toBe(first.token)
    expect(first.lost.aborted).toBe(false)
  })

  it('says who holds it and until when, and an older version nothing of the first', async () => {
    const options = given({ ttlMs: 60_000 })
    const lease = await take(options)
    const holder = await holderOf(options)
    expect(holder?.who).toMatch(
      new RegExp(`^${hostname()}, process ${process.pid}, running since \\d{4}-\\d\\d-\\d\\dT`),
    )
    expect((holder?.endsAtMs ?? 0) - Date.now()).toBeGreaterThan(30_000)
    expect((holder?.endsAtMs ?? 0) - Date.now()).toBeLessThanOrEqual(60_000)
    await lease.release()
    await options.redis.set(leaseKey(options.prefix, 'main'), randomUUID(), 'PX', 60_000)
    expect(await holderOf(options)).toMatchObject({ who: undefined })
  })

  it('costs who waits for it one command a try, with whose it is', async () => {
    const options = given()
    await take(options)
    const asked: string[] = []
    const redis = noting(options.redis, asked)
    expect((await holderOf({ ...options, redis })).who).toContain(`process ${process.pid}`)
    expect(asked).toEqual(['eval'])
  })

  it('of the dead is dropped by who is alone, for its sources', async () => {
    const options = given({ ttlMs: 60_000 })
    await options.redis.set(leaseKey(options.prefix, 'main'), 'dead', 'PX', 60_000)
    await dropLeases(options.redis, options.prefix, ['main', 'second'])
    await take(options)
  })

  it('is taken by exactly one of many that ask at once', async () => {
    const options = given()
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => tryLease({ ...options, redis: server.client() })),
    )
    const leases = answers.filter((answer) => answer !== undefined)
    expect(leases).toHaveLength(1)
    await leases[0]?.release()
  })

  it('of two sources are two', async () => {
    const options = given()
    await take(options)
    await take({ ...options, source: 'second' })
  })

  it('is kept for longer than it lives, by renewing', async () => {
    const ttlMs = 2_000
    const options = given({ ttlMs })
    const lease = await take(options)
    const deadline = performance.now() + 1.1 * ttlMs
    await vi.waitFor(() => expect(performance.now()).toBeGreaterThan(deadline), soon)
    expect(await options.redis.get(leaseKey(options.prefix, 'main'))).toBe(lease.token)
    lease.check()
  })

  it('that another took is lost, and is not given back by the one that lost it', async () => {
    const options = given({ ttlMs: 300 })
    const lease = await take(options)
    await options.redis.set(leaseKey(options.prefix, 'main'), 'another')
    await vi.waitFor(() => expect(lease.lost.aborted).toBe(true), soon)
    expect(() => lease.check()).toThrow(LeaseLost)
    await lease.release()
    expect(await options.redis.get(leaseKey(options.prefix, 'main'))).toBe('another')
  })

  it('that Redis forgot is lost', async () => {
    const options = given({ ttlMs: 300 })
    const lease = await take(options)
    await options.redis.del(leaseKey(options.prefix, 'main'))
    await vi.waitFor(() => expect(lease.lost.aborted).toBe(true), soon)
    expect(lease.lost.reason).toMatchObject({ name: 'LeaseLost', code: 'LEASE_LOST' })
  })

  it('is known to be gone by a process that wakes up after a freeze, before it does anything', async () => {
    let frozenMs = 0
    const lease = await take(given({ ttlMs: 60_000, elapsed: () => performance.now() + frozenMs }))
    lease.check()
    frozenMs = 61_000
    expect(() => lease.check()).toThrow(/not renewed for 61\d\d\d ms/)
    expect(lease.lost.aborted).toBe(true)
  })

  it('is lost when Redis is away for longer than it lives', async () => {
    const own = await startRedis({ aof: true })
    onTestFinished(() => own.dispose())
    const options = given({ redis: own.client(), ttlMs: 1_500 })
    const lease = await take(options)
    await own.kill9()
    await vi.waitFor(() => expect(lease.lost.aborted).toBe(true), soon)
  })

  it('that was taken by a try whose answer was lost is had by the next try of the same taker', async () => {
    const taker = newTaker()
    const options = given({ taker })
    const { set, eval: run } = options.redis
    // Redis carries it out, and the connection breaks before it has said so.
    const lost = async () => Promise.reject(new Error('Command timed out'))
    Object.assign(options.redis, {
      set: (...given: Parameters<typeof set>) => set.apply(options.redis, given).then(lost),
      eval: (...given: Parameters<typeof run>) => run.apply(options.redis, given).then(lost),
    })
    await expect(tryLease(options)).rejects.toThrow('Command timed out')
    Object.assign(options.redis, { set, eval: run })
    expect(await tryLease({ ...options, taker: newTaker() })).toBeUndefined()
    const lease = await take(options)
    expect(await options.redis.get(leaseKey(options.prefix, 'main'))).toBe(lease.token)
  })

  it('is asked for again a little earlier or later by each, well before it could have expired twice', () => {
    const pauses = new Set(Array.from({ length: 20 }, () => leaseRetryMs(15_000)))
    expect(pauses.size).toBeGreaterThan(10)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(5_000)
  })
})

function given(options: Partial<LeaseOptions> = {}): LeaseOptions {
  return { redis: server.client(), prefix: freshPrefix(), source: 'main', log: captureLog().log, ...options }
}

async function holderOf(options: LeaseOptions): Promise<LeaseHolder> {
  const held: LeaseHolder[] = []
  await tryLease({ ...options, onHeld: (holder) => held.push(holder) })
  const [holder] = held
  if (!holder) throw new Error('nobody has the lease')
  return holder
}

async function take(options: LeaseOptions): Promise<Lease> {
  const lease = await tryLease(options)
  if (!lease) throw new Error('the lease is held by another')
  onTestFinished(() => lease.release())
  return lease
}
