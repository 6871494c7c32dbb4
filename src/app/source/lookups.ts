import type { Config, SourceConfig } from '../../config/schema.ts'
import type { ApiRequest } from '../../feed/api/request.ts'
import { createFeedClient } from '../../feed/client.ts'
import { FeedError } from '../../feed/errors.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { formatDuration } from '../../lib/duration.ts'
import { UserError } from '../../lib/errors.ts'
import { budgetTeacher } from '../../poller/budget.ts'
import { budgetDay } from '../../schedule/budget.ts'
import { startEmbeddedRedis } from '../../store/connection/embedded.ts'
import { DirInUseError, embeddedPaths, socketUrl } from '../../store/connection/embedded-paths.ts'
import { listenForLeave } from '../../store/connection/leave.ts'
import {
  closeRedis,
  connectRedis,
  type RedisClient,
  type RedisTarget,
  waitForRedis,
} from '../../store/connection/redis.ts'
import { isRedisAway } from '../../store/connection/redis-errors.ts'
import { createGrantStore } from '../../store/ledger/grant.ts'
import { createLedger, type Reservation } from '../../store/ledger/ledger.ts'
import { createLogger } from '../../telemetry/log.ts'
import { redisTargetOf } from '../redis.ts'
import { Teardown } from '../teardown.ts'
import { scheduleOptionsOf, unitsGranted } from './schedule-options.ts'

/**
 * Calls of the API for a person, also while a bridge runs. Each call first reserves its units in the ledger of its
 * source, which the bridge uses too; if the ledger refuses, no call is made. Lookups never take what polling needs: they
 * may use only a share of the day's units, and never the last ones.
 */
export interface Lookups {
  /** The answer as it came. Rejects with a UserError. */
  ask(request: ApiRequest, options: { readonly waitForMinute: boolean }): Promise<unknown>
  close(): Promise<void>
}

/** What calls that are no polls leave of a day's units for polling; the API may grant fewer than the config has. */
export function unitsOfPolls(unitsPerDay: number, granted: number): number {
  return unitsPerDay - granted + Math.ceil(granted * unitsShareOfPolls)
}

const unitsShareOfPolls = 0.1

const redisTimeoutMs = 5_000
/** How long one of many calls waits for the limit of requests a minute; a second more than the minute. */
const minuteWaitMsMax = 61_000

/** How long it waits so in all: polls may leave lookups no request at all, for ever. */
const minuteWaitsMsMax = 5 * 60_000

const stepTimeoutMs = 10_000

export async function openLookups(
  config: Config,
  source: string,
  sourceConfig: SourceConfig,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<Lookups> {
  const { budget, account, baseUrl, token, context } = sourceConfig
  const teardown = new Teardown(log)
  try {
    const leaving = new AbortController()
    const redis = await reachRedis(config, teardown, signal, () => leaving.abort())
    const ends = AbortSignal.any([signal, leaving.signal])
    const { prefix } = config.redis
    const dayOf = (nowMs: number) => budgetDay(nowMs, scheduleOptionsOf(sourceConfig))
    const ledger = createLedger({ redis, prefix, source, account, ...budget, budgetDay: dayOf, clock })
    const grants = createGrantStore({ redis, prefix, source, account })
    const feed = createFeedClient({ source, baseUrl, token })
    teardown.push('feed', () => feed.close())
    const reserve = async ({ endpoint }: ApiRequest, waitForMinute: boolean) => {
      const endMs = clock.monotonicMs() + minuteWaitsMsMax
      for (;;) {
        if (leaving.signal.aborted) throw new UserError(leftText)
        const granted = await unitsGranted(grants, sourceConfig, clock.now())
        const reserved = await ledger.reserve({
          cost: endpoint.units,
          purpose: 'api',
          purposeUnitsMax: Math.floor(granted * context.unitsShare),
          leaveUnits: unitsOfPolls(budget.unitsPerDay, granted),
          leaveFresh: true,
        })
        if (reserved.ok) return reserved
        const waitMs = 'retryAtMs' in reserved ? reserved.retryAtMs - clock.now() : 0
        if (!waitForMinute || reserved.limit !== 'minute' || waitMs > minuteWaitMsMax)
          throw new UserError(refusal(reserved, endpoint.units, granted, context.unitsShare))
        if (clock.monotonicMs() >= endMs) throw new UserError(noTurn(budget.requestsPerMinute))
        await clock.sleep(Math.max(1, waitMs), ends).catch(() => signal.throwIfAborted())
      }
    }
    const refused = async (
      { limit = 'minute', retryAfterMs: askedMs }: FeedError,
      cost: number,
      reserved: Extract<Reservation, { ok: true }>,
    ) => {
      await ledger.hold(limit, askedMs)
      if (limit !== 'budget') return
      const { unitsPerDay } = budget
      const deps = { source, ledger, budgetDay: dayOf, clock, log, unitsPerDay }
      await budgetTeacher(deps, grants)({ ...reserved, units: cost }, askedMs)
    }
    return {
      async ask(request, { waitForMinute }) {
        const trouble = feed.tokenTrouble()
        if (trouble) throw new UserError(`${sentence(trouble.message)} Nothing was sent.`)
        const reserved = await reserve(request, waitForMinute).catch((thrown: unknown) => {
          throw isRedisAway(thrown) ? uncounted(thrown) : thrown
        })
        try {
          return await feed.send(request, signal)
        } catch (thrown) {
          if (!(thrown instanceof FeedError)) throw thrown
          if (thrown.code === 'rate_limited') await refused(thrown, request.endpoint.units, reserved)
          throw new UserError(sentence(thrown.message), { cause: thrown })
        } finally {
          ledger.ended(reserved)
        }
      },
      close: () => teardown.run(stepTimeoutMs),
    }
  } catch (thrown) {
    await teardown.run(stepTimeoutMs)
    throw thrown
  }
}

function noTurn(requestsPerMinute: number): string {
  const limit = `requestsPerMinute is ${requestsPerMinute}`
  return `For ${formatDuration(minuteWaitsMsMax)} there was no request left for lookups: polls come first, and ${limit}. Raise it, or poll less often. Nothing was sent.`
}

const log = createLogger({ level: 'silent' })

/**
 * Connects to the Redis of the bridge, which counts the units. An embedded Redis that does not run is started for as long
 * as the calls take, so that the next bridge finds in it what was spent; one that starts meanwhile asks this command to end.
 */
async function reachRedis(config: Config, teardown: Teardown, signal: AbortSignal, leave: () => void) {
  if (config.redis.mode !== 'embedded') return connect(redisTargetOf(config.redis), teardown, signal)
  const running = { url: socketUrl(embeddedPaths(config.dataDir)) }
  const own = new Teardown(log)
  try {
    const redis = await connect(running, own, signal, embeddedTimeoutMs)
    teardown.push('running redis', () => own.run(stepTimeoutMs))
    return redis
  } catch {
    await own.run(stepTimeoutMs)
  }
  try {
    const embedded = await startEmbeddedRedis({ dataDir: config.dataDir, log, signal })
    let unlisten = async () => {}
    teardown.push('embedded redis', () => embedded.stop().finally(() => unlisten()))
    unlisten = await listenForLeave(embedded.socketPath, leave)
    return await connect({ url: embedded.url }, teardown, signal)
  } catch (thrown) {
    // A bridge runs after all: its server is starting, or busy.
    if (thrown instanceof DirInUseError) return connect(running, teardown, signal)
    throw thrown
  }
}

const leftText =
  'A bridge starts on this dataDir, so this command ends here; the next one counts in the Redis of that bridge.'

/** A server on this machine answers at once, if it runs. */
const embeddedTimeoutMs = 1_000

async function connect(
  target: RedisTarget,
  teardown: Teardown,
  signal: AbortSignal,
  timeoutMs = redisTimeoutMs,
): Promise<RedisClient> {
  const redis = connectRedis({ target, profile: 'commands', connectionName: 'alert-bridge-api' }, log)
  teardown.push('redis', () => closeRedis(redis))
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  try {
    await waitForRedis(redis, { log, signal: limit })
  } catch (thrown) {
    throw thrown instanceof UserError ? thrown : uncounted(thrown)
  }
  return redis
}

function uncounted(cause: unknown): UserError {
  return new UserError('Redis does not answer, so that units cannot be counted. Nothing was sent.', { cause })
}

function refusal(
  refused: Extract<Reservation, { ok: false }>,
  units: number,
  unitsPerDay: number,
  unitsShare: number,
): string {
  if (refused.limit === 'lease') return 'Nothing was sent.'
  const { limit, held, ofPurpose, purposeUnitsLeft = 0, retryAtMs } = refused
  const wait = formatDuration(Math.max(0, retryAtMs - systemClock.now()))
  const again = `It is worth asking again in ${wait}. Nothing was sent.`
  const cost = counted(units)
  const left = purposeUnitsLeft === 0 ? 'none' : `only ${counted(purposeUnitsLeft)}`
  const percent = `${Math.round(unitsShare * 100)} % of ${unitsPerDay}`
  if (held)
    return `The API asked to wait (${limit === 'budget' ? "the day's budget" : 'requests a minute'}). ${again}`
  if (limit === 'minute') return `The requests of this minute are used up. ${again}`
  if (ofPurpose && units > Math.floor(unitsPerDay * unitsShare))
    return `This call costs ${cost}, more than lookups may ever use of a day (${percent}): raise context.unitsShare of the source. Nothing was sent.`
  return ofPurpose
    ? `This call costs ${cost}, and lookups have ${left} left of what they may use of a day (${percent}). ${again}`
    : `This call costs ${cost}, and what is left of the day's ${unitsPerDay} is for polling. ${again}`
}

function counted(units: number): string {
  return `${units} ${units === 1 ? 'unit' : 'units'}`
}

function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1)
  return /[.!?…]$/.test(text) ? text : `${text}.`
}
