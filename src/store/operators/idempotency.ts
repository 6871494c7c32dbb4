import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { RedisClient } from '../connection/redis.ts'
import { idempotencyKey } from '../operator-keys.ts'

/**
 * Requests that change something and name a key (`Idempotency-Key`): one that is sent again gets the answer of the first, from
 * whichever replica. A request that broke off goes on under its first instant, so that nothing is done twice.
 */
export interface IdempotencyStore {
  begin(key: string, request: string, nowMs: number): Promise<Begun>
  /** Keeps the answer for `idempotencyKeptMs`. */
  finish(key: string, request: string, atMs: number, answer: unknown): Promise<void>
  /** It may have done a part: the same request may be sent again at once. */
  release(key: string, request: string, atMs: number): Promise<void>
  /** It was refused: the key may be used for another request. */
  forget(key: string): Promise<void>
}

export type Begun =
  /** No process is carrying it out: the caller is to do it. */
  | ({ readonly kind: 'begun' } & KeyedRequest)
  | { readonly kind: 'done'; readonly answer: unknown }
  /** The first one is not answered yet. */
  | { readonly kind: 'running' }
  /** The key was used for another request. */
  | { readonly kind: 'other' }

/** A request with a key that is to be carried out. */
export interface KeyedRequest {
  /** When the request with this key was first begun. */
  readonly atMs: number
  /** The same each time that it is begun. */
  readonly name: string
  /** Stores a number with the request, where none is stored, and returns the stored one: the same each time that it is begun. */
  keep(value: number): Promise<number>
}

/** How long the answer to a request with a key is kept. */
const idempotencyKeptMs = 24 * 3_600_000
/** Longer than any request may take: one that is not answered by then was broken off. */
const runMsMax = 30_000

export function createIdempotencyStore(options: { redis: RedisClient; prefix: string }): IdempotencyStore {
  const { redis } = options
  const keyOf = (key: string) => idempotencyKey(options.prefix, digest(key))
  const write = async (key: string, stored: Stored) => {
    await redis.set(keyOf(key), JSON.stringify(stored), 'PX', idempotencyKeptMs)
  }
  return {
    async begin(key, request, nowMs) {
      const given = [digest(request), nowMs, runMsMax, idempotencyKeptMs]
      const text = await redis.eval(beginScript, 1, keyOf(key), ...given)
      const { of, atMs, runsUntilMs, answer } = storedSchema.parse(JSON.parse(String(text)))
      if (of !== digest(request)) return { kind: 'other' }
      if (answer !== undefined) return { kind: 'done', answer: JSON.parse(answer) }
      if (runsUntilMs !== undefined) return { kind: 'running' }
      const name = digest(`${key} ${atMs}`)
      const keep = async (value: number) =>
        Number(
          await redis.eval(keepScript, 1, idempotencyKey(options.prefix, name), value, idempotencyKeptMs),
        )
      return { kind: 'begun', atMs, name, keep }
    },
    finish: (key, request, atMs, answer) =>
      write(key, { of: digest(request), atMs, answer: JSON.stringify(answer) }),
    release: (key, request, atMs) => write(key, { of: digest(request), atMs, runsUntilMs: 0 }),
    async forget(key) {
      await redis.del(keyOf(key))
    },
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

type Stored = z.infer<typeof storedSchema>
const storedSchema = z.object({
  /** A digest of the request. */
  of: z.string(),
  atMs: z.number(),
  /** By when the process that carries it out has ended; absent once it is answered, and for the caller that begins it. */
  runsUntilMs: z.number().optional(),
  answer: z.string().optional(),
})

/** KEYS what is kept of the request · ARGV number, kept (ms) · Returns the number of whoever came first. */
const keepScript = `
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
return redis.call('GET', KEYS[1])
`

/**
 * KEYS the key · ARGV digest of the request, now, longest run, kept (ms)
 * Returns what is stored; without `runsUntilMs` and `answer` where the caller is to do it. Times are Redis' own: a run that would end
 * later than the longest one was begun before its clock was set back.
 */
const beginScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local text = redis.call('GET', KEYS[1])
local known = text and cjson.decode(text)
if known and (known.of ~= ARGV[1] or known.answer) then return text end
if known and known.runsUntilMs > now and known.runsUntilMs <= now + ARGV[3] then return text end
local at = known and known.atMs or tonumber(ARGV[2])
local mine = { of = ARGV[1], atMs = at, runsUntilMs = now + ARGV[3] }
redis.call('SET', KEYS[1], cjson.encode(mine), 'PX', ARGV[4])
mine.runsUntilMs = nil
return cjson.encode(mine)
`
