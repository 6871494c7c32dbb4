import { setImmediate as untilAllAsked } from 'node:timers/promises'
import { Cluster, type Redis } from 'ioredis'
import * as z from 'zod'
import { readJson } from '../../alert/json/json.ts'
import type { RedisClient } from '../connection/redis.ts'
import { hashTag, namesFoundKey, servedSinksKey, sinkNamesKey, sourceNamesKey } from '../keys.ts'

/**
 * The names under which work was ever stored, so that alerts of a name that left the config can be found. A sink's name
 * is stored together with its alerts; that of a source by its poller.
 */
export interface NameStore {
  sinks(): Promise<readonly string[]>
  /**
   * Stores for `servedMs` that this process has these sinks in its config, and no others any more, and what it is. While a
   * config is rolled out, one replica has sinks that another does not. Resolves to all names as they are then: one command,
   * because every process asks every few seconds.
   */
  serve(process: string, sinks: readonly string[], about?: RunningProcess): Promise<KnownNames>
  /** Sinks that a running process has in its config. */
  served(): Promise<ReadonlySet<string>>
  /** The running processes; `id`: the process of `serve`. */
  processes(): Promise<readonly (RunningProcess & { readonly id: string })[]>
  sources(): Promise<ReadonlyMap<string, KnownSource>>
  addSource(name: string, known: KnownSource): Promise<void>
  /**
   * Searches the keys, once, for names that an earlier version did not store. Throws what Redis throws; the next call then
   * searches again.
   */
  findOnce(): Promise<void>
}

export interface KnownNames extends SinkNames {
  readonly sources: ReadonlyMap<string, KnownSource>
  /** Whether `findOnce` was done. */
  readonly found: boolean
}

export interface SinkNames {
  readonly sinks: readonly string[]
  /** Sinks that a running process has in its config. */
  readonly served: ReadonlySet<string>
}

export type RunningProcess = z.infer<typeof processSchema>

interface KnownSource {
  /** See `hashAccount`; undefined where it is not known. */
  readonly accountHash?: string | undefined
  readonly dropped?: boolean | undefined
}

export function createNameStore(redis: RedisClient, prefix: string): NameStore {
  const sinksKey = sinkNamesKey(prefix)
  const sourcesKey = sourceNamesKey(prefix)
  const foundKey = namesFoundKey(prefix)
  const servedKey = servedSinksKey(prefix)
  const readSources = async () => {
    const stored = Object.entries(await redis.hgetall(sourcesKey))
    return new Map(stored.map(([name, text]) => [name, knownOf(text)]))
  }
  const sources = onceATurn(readSources)
  const membersServed = onceATurn(async () =>
    textsSchema.parse(await redis.eval(servedScript, 1, servedKey, servedMs)),
  )
  return {
    sinks: async () => (await redis.smembers(sinksKey)).sort(),
    async serve(process, sinks, about) {
      const names = about === undefined ? sinks : [...sinks, `${aboutMark}${JSON.stringify(about)}`]
      const keys = [servedKey, sinksKey, sourcesKey, foundKey]
      const answer = await redis.eval(serveScript, keys.length, ...keys, process, servedMs, ...names)
      const [members, sinksStored, sourcesStored, found] = knownSchema.parse(answer)
      const pairs = sourcesStored.flatMap((name, at) =>
        at % 2 === 0 ? [[name, knownOf(sourcesStored[at + 1] ?? '')] as const] : [],
      )
      return {
        sinks: sinksStored.sort(),
        served: sinksOf(members),
        sources: new Map(pairs),
        found: found === 1,
      }
    },
    served: async () => sinksOf(await membersServed()),
    async processes() {
      return (await membersServed()).flatMap((member) => processOf(member) ?? [])
    },
    sources,
    async addSource(name, known) {
      await redis.hset(sourcesKey, name, storedSource(known))
    },
    async findOnce() {
      if ((await redis.exists(foundKey)) === 1) return
      const { pattern, nameOf } = namedKeys(prefix)
      // In a cluster all keys of one prefix are on one node; which one it is may change while they are looked for.
      const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis]
      for (const node of nodes)
        for await (const key of scan(node, pattern)) {
          const found = nameOf(key)
          if (found?.kind === 'sink') await redis.sadd(sinksKey, found.name)
          if (found?.kind === 'source') await redis.hsetnx(sourcesKey, found.name, storedSource({}))
        }
      await redis.set(foundKey, String(Date.now()))
    },
  }
}

/** What is asked for in one turn of the event loop is read once, after it: a thousand sources that start ask together. */
function onceATurn<T>(read: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => {
    asked ??= untilAllAsked().then(() => {
      asked = undefined
      return read()
    })
    return asked
  }
}

/** A process stores its sinks again every few seconds; an entry is valid for so long. */
export const servedMs = 20_000

/** No sink has it in its name. */
const aboutMark = '='

const textsSchema = z.array(z.string())
const knownSchema = z.tuple([textsSchema, textsSchema, textsSchema, z.int()])

function sinksOf(members: readonly string[]): Set<string> {
  const sinks = members.filter((member) => !member.startsWith(aboutMark))
  return new Set(sinks.map((member) => member.split(' ')[0] ?? ''))
}

const processSchema = z.object({
  name: z.string(),
  role: z.string(),
  configHash: z.number(),
  /** Absent where an earlier version stored it. */
  refusedReload: z.boolean().default(false),
})

function processOf(member: string): (RunningProcess & { readonly id: string }) | undefined {
  if (!member.startsWith(aboutMark)) return undefined
  try {
    const end = member.lastIndexOf(' ')
    const about = processSchema.parse(JSON.parse(member.slice(aboutMark.length, end)))
    return { ...about, id: member.slice(end + 1) }
  } catch {
    return undefined
  }
}

const nowLine = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/**
 * KEYS served, names of sinks, names of sources, found · ARGV process, how long an entry is valid (ms), sinks · Also removes what others
 * stored too long ago. Returns all four.
 */
const serveScript = `${nowLine}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if string.sub(member, -#ARGV[1] - 1) == ' ' .. ARGV[1] then redis.call('ZREM', KEYS[1], member) end
end
for index = 3, #ARGV do redis.call('ZADD', KEYS[1], now, ARGV[index] .. ' ' .. ARGV[1]) end
return {
  redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[2], now + ARGV[2]),
  redis.call('SMEMBERS', KEYS[2]),
  redis.call('HGETALL', KEYS[3]),
  redis.call('EXISTS', KEYS[4]),
}
`

/**
 * KEYS served · ARGV how long an entry is valid (ms) · Returns the valid members. Those from before Redis' clock was set
 * back are not valid.
 */
const servedScript = `${nowLine}
return redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[1], now + ARGV[1])
`

/** The hash of the account is called `mark` in Redis, as every version reads it. `dropped`: only spent units are left. */
const storedSchema = z
  .object({ mark: z.string().optional(), dropped: z.boolean().optional() })
  .transform(({ mark, dropped }) => ({ accountHash: mark, dropped }))

/** How a source is stored beside its name. */
export function storedSource({ accountHash, dropped }: KnownSource): string {
  return JSON.stringify({ mark: accountHash, dropped })
}

/** What another version wrote may be unreadable: then the account is unknown. */
function knownOf(text: string): KnownSource {
  return storedSchema.safeParse(readJson(text)).data ?? {}
}

/** How many keys one SCAN looks at, in a Redis that others may use too. */
const scanCount = 1_000

async function* scan(node: Redis, pattern: string): AsyncGenerator<string> {
  let cursor = '0'
  do {
    const [next, keys] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount)
    cursor = next
    yield* keys
  } while (cursor !== '0')
}

/** The `SCAN` pattern of the keys that every queue and every source has, and the name in such a key. */
function namedKeys(prefix: string): { pattern: string; nameOf(key: string): KeyName | undefined } {
  const tag = hashTag(prefix)
  return {
    pattern: `${tag}:*:meta`,
    nameOf(key) {
      const [kind, name, ...rest] = key.startsWith(`${tag}:`) ? key.slice(tag.length + 1).split(':') : []
      if (name === undefined || rest.join(':') !== 'meta') return undefined
      if (kind === 'queue') return { kind: 'sink', name }
      return kind === 'source' ? { kind: 'source', name } : undefined
    },
  }
}

interface KeyName {
  readonly kind: 'sink' | 'source'
  readonly name: string
}
