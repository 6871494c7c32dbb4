import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { within } from '../../lib/time-limit.ts'
import { waits } from '../../lib/waits.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { RedisClient } from '../connection/redis.ts'
import { redisErrorText } from '../connection/redis-errors.ts'
import { leaseKey } from '../keys.ts'

/**
 * One poller a source over all replicas: a key that expires by Redis' clock unless its holder renews it.
 *
 * The holder counts from before its last successful renewal was sent, so it stops before the key expires: two processes
 * have it only if one was frozen in between, or if Redis lost the key. The frozen one finds out
 * at `check`, the other at its next renewal, and both at the latest in the ledger, which reserves nothing for a token that
 * is no longer there. Two pollers cost units, never alerts.
 */
export interface Lease {
  readonly token: string
  /** False once it was released, is lost, or may have run out while this process was frozen. */
  readonly held: boolean
  /** Aborts with a LeaseLost as soon as this process knows. */
  readonly lost: AbortSignal
  /** Throws LeaseLost when the lease is, or may be, lost: to be called right before anything that only the holder may do. */
  check(): void
  /** Removes the lease, so that another replica can take it at once. */
  release(): Promise<void>
}

export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
  readonly code = 'LEASE_LOST'
}

export interface LeaseOptions {
  readonly redis: RedisClient
  readonly prefix: string
  readonly source: string
  readonly log: Logger
  /** The same for all tries of one taker: one whose answer was lost may have taken it. A new one for each try without. */
  readonly taker?: string
  /** Told who has it, where another has: every waiting replica asks every few seconds, so it is part of the same answer. */
  readonly onHeld?: (holder: LeaseHolder) => void
  readonly ttlMs?: number
  readonly clock?: Clock
  /** A clock in milliseconds that also runs while the process is frozen; for tests. */
  readonly elapsed?: () => number
}

export const leaseTtlMs = 15_000
const releaseMsMax = 2_000

/** The start of every token, so that a waiting replica can name the holder. */
export const thisProcess = `${hostname()}, process ${process.pid}, running since ${new Date(performance.timeOrigin).toISOString()}`

/** Who asks for a lease until it has it, as the lease's token. */
export function newTaker(): string {
  return `${thisProcess} ${randomUUID()}`
}

/** The lease, or undefined when another has it, after `onHeld`. Throws what Redis throws. */
export async function tryLease(options: LeaseOptions): Promise<Lease | undefined> {
  const token = options.taker ?? newTaker()
  const ttlMs = options.ttlMs ?? leaseTtlMs
  const elapsed = options.elapsed ?? stopwatch()
  const askedMs = elapsed()
  const key = leaseKey(options.prefix, options.source)
  const answer = await options.redis.eval(takeScript, 1, key, token, ttlMs, waits.lease.maxMs)
  if (answer === 1) return new OwnLease({ ...options, key, token, ttlMs, elapsed, askedMs })
  const { onHeld, clock = systemClock } = options
  const [holder, leftMs] = Array.isArray(answer) ? answer : []
  const who = /^(.{1,200}) [\da-f-]{36}$/.exec(String(holder))?.[1]
  onHeld?.({ who, endsAtMs: clock.now() + Number(leftMs) })
  return undefined
}

export interface LeaseHolder {
  /** Machine, process and start; undefined where an earlier version wrote the token. */
  readonly who: string | undefined
  /** When the lease ends unless it is renewed; a running holder renews it every few seconds. */
  readonly endsAtMs: number
}

/** For a process that knows that it is alone on this Redis: all leases there are of processes that have ended. */
export async function dropLeases(
  redis: RedisClient,
  prefix: string,
  sources: readonly string[],
): Promise<void> {
  if (sources.length > 0) await redis.del(...sources.map((source) => leaseKey(prefix, source)))
}

/** The pause of a waiting replica between two tries; random, so that replicas do not all ask at the same time. */
export function leaseRetryMs(ttlMs: number = leaseTtlMs): number {
  return (ttlMs / 3) * (0.7 + 0.3 * Math.random())
}

interface OwnLeaseOptions extends LeaseOptions {
  readonly key: string
  readonly token: string
  readonly ttlMs: number
  readonly elapsed: () => number
  readonly askedMs: number
}

class OwnLease implements Lease {
  readonly token: string
  readonly #options: OwnLeaseOptions
  readonly #lost = new AbortController()
  readonly #done = new AbortController()
  readonly #renewing: Promise<void>
  #renewedMs: number

  constructor(options: OwnLeaseOptions) {
    this.token = options.token
    this.#options = options
    this.#renewedMs = options.askedMs
    this.#renewing = this.#renewUntilDone()
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  get held(): boolean {
    const ageMs = this.#options.elapsed() - this.#renewedMs
    return ageMs < this.#options.ttlMs && !this.#done.signal.aborted && !this.lost.aborted
  }

  check(): void {
    const ageMs = this.#options.elapsed() - this.#renewedMs
    if (ageMs >= this.#options.ttlMs) this.#lose(`not renewed for ${Math.round(ageMs)} ms`)
    this.#lost.signal.throwIfAborted()
  }

  async release(): Promise<void> {
    this.#done.abort(new Error('released'))
    const { redis, key, token } = this.#options
    const released = this.#renewing.then(() => redis.eval(releaseScript, 1, key, token))
    // A lease that cannot be released expires, so that nobody who stops has to wait for a Redis that does not answer.
    await within(releaseMsMax, 'releasing a lease', released).catch(() => {})
  }

  async #renewUntilDone(): Promise<void> {
    const { clock = systemClock, ttlMs } = this.#options
    const { signal } = this.#done
    let pauseMs = ttlMs / 3
    while (!signal.aborted && !this.#lost.signal.aborted) {
      try {
        await clock.sleep(pauseMs, signal)
      } catch {
        return
      }
      // After a failure less time is left, so the next try comes sooner.
      pauseMs = (await this.#renew()) ? ttlMs / 3 : ttlMs / 15
    }
  }

  async #renew(): Promise<boolean> {
    const { redis, key, token, ttlMs, elapsed, log } = this.#options
    const askedMs = elapsed()
    try {
      const renewed = await redis.eval(renewScript, 1, key, token, ttlMs)
      if (renewed !== 1) this.#lose('another process has it, or Redis has forgotten it')
      this.#renewedMs = askedMs
      return true
    } catch (error) {
      log.debug({ reason: redisErrorText(error) }, 'lease not renewed')
      if (elapsed() - this.#renewedMs >= ttlMs) this.#lose('Redis did not answer in time')
      return false
    }
  }

  #lose(reason: string): void {
    this.#lost.abort(new LeaseLost(`the lease on polling ${this.#options.source} is lost: ${reason}`))
  }
}

/** KEYS the lease · ARGV token, time to live (ms) · Returns 1 when it is still ours. */
const renewScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`

/**
 * KEYS the lease · ARGV token, time to live, the longest that another may last (ms) · Returns 1 when it is ours, else whose it is
 * and how long it lasts (ms). A running process renews its lease within seconds; that of an ended one would last as much longer as
 * Redis' clock was set back.
 */
const takeScript = `
local holder = redis.call('GET', KEYS[1])
if not holder or holder == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
local left = redis.call('PTTL', KEYS[1])
if left == -1 or left > tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  left = tonumber(ARGV[3])
end
return {holder, left}
`

/** KEYS the lease · ARGV token · Returns 1 when it was ours. */
const releaseScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`

/**
 * The larger of two clocks: the monotonic one stops while the machine is suspended, the wall clock can be set back. A wall
 * clock that is set forward ends the lease too early, which costs only a moment.
 */
function stopwatch(): () => number {
  const wall = Date.now()
  const monotonic = performance.now()
  return () => Math.max(Date.now() - wall, performance.now() - monotonic)
}
