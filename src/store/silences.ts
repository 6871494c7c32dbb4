import { createHash, randomBytes } from 'node:crypto'
import * as z from 'zod'
import { parseMatch, patternsIn, type WrittenMatch } from '../alert/match-form.ts'
import type { Silence } from '../alert/silence.ts'
import { UserError } from '../lib/errors.ts'
import { waits } from '../lib/waits.ts'
import { silencesKey } from './operator-keys.ts'
import type { RedisClient } from './redis.ts'

/** The silences that operators have set, over all replicas. Those that have ended are removed by the next `list`. */
export interface SilenceStore {
  /** Those that have not ended, the one that ends first first. */
  list(nowMs: number): Promise<readonly StoredSilence[]>
  /** Throws a UserError where there are too many, or where the match is none. */
  add(silence: NewSilence, nowMs: number): Promise<StoredSilence>
  /** Ends it now; false when there is none with this id. */
  expire(id: string): Promise<boolean>
}

export interface NewSilence extends Omit<Silence, 'id' | 'match'> {
  readonly match: WrittenMatch
  /** The one that was added under this name before is left as it is. */
  readonly name?: string
}

/** `written` is the match as the operator wrote it. */
export interface StoredSilence extends Silence {
  readonly written: WrittenMatch
}

/** Every alert is compared with every silence. */
export const silencesMax = 500
/** Of all silences together: to compile them takes 0.2 s, and up to a second where each is as large as may be; nothing else runs then. */
export const silencePatternsMax = 500

export function createSilenceStore({ redis, prefix }: { redis: RedisClient; prefix: string }): SilenceStore {
  const key = silencesKey(prefix)
  /** Those of the last `list`, by their id and text: they are read every few seconds, and seldom change. */
  let known: ReadonlyMap<string, StoredSilence | undefined> = new Map()
  const list: SilenceStore['list'] = async (nowMs) => {
    const entries = Object.entries(await redis.hgetall(key))
    known = new Map(
      entries.map(([id, text]) => {
        const name = `${id} ${text}`
        return [name, known.has(name) ? known.get(name) : parse(id, text)]
      }),
    )
    const silences = [...known.values()].filter((silence) => silence !== undefined)
    const ended = silences.filter(({ endsAtMs }) => endsAtMs <= nowMs).map(({ id }) => id)
    if (ended.length > 0) await redis.hdel(key, ...ended)
    return silences.filter(({ endsAtMs }) => endsAtMs > nowMs).sort((a, b) => a.endsAtMs - b.endsAtMs)
  }
  return {
    list,
    async add({ match, startsAtMs, endsAtMs, comment, name }, nowMs) {
      const before = await list(nowMs)
      const id = name === undefined ? randomBytes(4).toString('hex') : idOf(name)
      const known = name !== undefined && before.find((silence) => silence.id === id)
      if (known) return known
      if (before.length >= silencesMax)
        throw new UserError(`There are ${silencesMax} silences already: expire some.`)
      const others = before.reduce((sum, { written }) => sum + patternsIn(written), 0)
      const own = patternsIn(match)
      if (own > 0 && others + own > silencePatternsMax)
        throw new UserError(
          `With it, silences would have more than ${silencePatternsMax} patterns: expire some, or name values without glob and regex.`,
        )
      const text = JSON.stringify({ v: 1, match, startsAtMs, endsAtMs, comment } satisfies z.input<
        typeof stored
      >)
      const silence = parse(id, text)
      if (silence === undefined) throw new UserError('This is no match.')
      await redis.hset(key, id, text)
      return silence
    },
    async expire(id) {
      return (await redis.hdel(key, id)) === 1
    },
  }
}

function idOf(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 8)
}

/** What a Date can represent. */
const storedInstant = z.number().min(-8.64e15).max(8.64e15)

const stored = z.object({
  v: z.literal(1),
  match: z.record(z.string(), z.unknown()),
  startsAtMs: storedInstant,
  endsAtMs: storedInstant,
  comment: z.string(),
})

/** One that cannot be read (a later version wrote it) is ignored: better a message too many than one too few. */
function parse(id: string, text: string): StoredSilence | undefined {
  const parsed = stored.safeParse(JSON.parse(text))
  const match = parsed.success ? parseMatch(parsed.data.match) : undefined
  if (!parsed.success || match === undefined) return undefined
  const { match: written, startsAtMs, comment } = parsed.data
  const endsAtMs = Math.min(parsed.data.endsAtMs, startsAtMs + waits.silence.maxMs)
  return { id, match, written, startsAtMs, endsAtMs, comment }
}
