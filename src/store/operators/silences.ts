import { createHash, randomBytes } from 'node:crypto'
import * as z from 'zod'
import type { Match } from '../../alert/match/match.ts'
import {
  parseMatchInSteps,
  patternSizeIn,
  patternsIn,
  sizeWords,
  type WrittenMatch,
} from '../../alert/match/match-form.ts'
import { inTurns, type Steps } from '../../alert/match/turns.ts'
import type { Silence } from '../../alert/silence.ts'
import { UserError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import { waits } from '../../lib/waits.ts'
import type { RedisClient } from '../connection/redis.ts'
import { silencesKey } from '../operator-keys.ts'

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

export interface StoredSilence extends Omit<Silence, 'match'> {
  /** The match as the operator wrote it. */
  readonly written: WrittenMatch
  /**
   * Absent where this version refuses a pattern that an earlier one took, or where a later one wrote the silence: it holds nothing
   * back, because a message too many is better than one too few, and whoever lists silences or reads the status sees that.
   */
  readonly match?: Match
  readonly ofLaterVersion?: true
}

/** Every alert is compared with every silence. */
export const silencesMax = 500
/** Of all silences together. */
export const silencePatternsMax = 500
export const silencePatternSizeMax = 20_000

export function createSilenceStore({ redis, prefix }: { redis: RedisClient; prefix: string }): SilenceStore {
  const key = silencesKey(prefix)
  /** Those of the last `list`, by their id and text: they are read with every page, and seldom change. */
  let known: Promise<Known> = Promise.resolve(new Map())
  const read = async (nowMs: number) => {
    const entries = Object.entries(await redis.hgetall(key))
    // One after another, so that what is compiled for one reader is there for the next.
    const before = known
    const parsed = before.then((each) => inTurns(parseAll(entries, each)))
    known = parsed.catch(() => before)
    const silences = [...(await parsed).values()].filter((silence) => silence !== undefined)
    const ended = silences.filter(({ endsAtMs, ofLaterVersion }) => endsAtMs <= nowMs && !ofLaterVersion)
    if (ended.length > 0) await redis.hdel(key, ...ended.map(({ id }) => id))
    const lasting = silences.filter(({ endsAtMs }) => endsAtMs > nowMs)
    return { ids: entries.map(([id]) => id), lasting: lasting.sort((a, b) => a.endsAtMs - b.endsAtMs) }
  }
  return {
    list: async (nowMs) => (await read(nowMs)).lasting,
    async add({ match, startsAtMs, endsAtMs, comment, name }, nowMs) {
      const id = name === undefined ? randomBytes(4).toString('hex') : idOf(name)
      const record: z.input<typeof stored> = { v: 1, match, startsAtMs, endsAtMs, comment }
      const text = JSON.stringify(record)
      const silence = await inTurns(parse(id, text))
      if (silence?.match === undefined) throw new UserError('This is no match.')
      for (let tries = 0; tries < addTriesMax; tries += 1) {
        const { ids, lasting } = await read(nowMs)
        const known = name !== undefined && lasting.find((each) => each.id === id)
        if (known) return known
        refuseExcess([...lasting, silence], match)
        // Orders of the same moment, also to other processes, do not pass the limits together.
        if ((await redis.eval(addScript, 1, key, id, text, ...ids)) === 1) return silence
      }
      throw new UserError('Too many silences were added at the same moment: try again.')
    },
    async expire(id) {
      return (await redis.hdel(key, id)) === 1
    },
  }
}

/** A try fails only where another order came through, so that of this many at one moment all are taken. */
const addTriesMax = 100

/** KEYS silences · ARGV id, text, the ids that were read. Adds it, unless another was added since: then 0. */
const addScript = `
local read = {}
for at = 3, #ARGV do read[ARGV[at]] = true end
for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do
  if not read[id] then return 0 end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
`

/** Throws where these are too many, or where the new one's patterns make all of them too many. */
function refuseExcess(silences: readonly StoredSilence[], added: WrittenMatch): void {
  if (silences.length > silencesMax)
    throw new UserError(`There are ${silencesMax} silences already: expire some.`)
  if (patternsIn(added) === 0) return
  const sumOf = (count: (written: WrittenMatch) => number) =>
    silences.reduce((sum, { written }) => sum + count(written), 0)
  const remedy = 'expire some, or name values without glob and regex.'
  if (sumOf(patternsIn) > silencePatternsMax)
    throw new UserError(`With it, silences would have more than ${silencePatternsMax} patterns: ${remedy}`)
  if (sumOf(patternSizeIn) > silencePatternSizeMax)
    throw new UserError(`All silences have ${sizeWords(silencePatternSizeMax)}: ${remedy}`)
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

/** What this version can show of one that a later version wrote. */
const storedLater = stored.extend({ v: z.number().gt(1), match: stored.shape.match.catch({}) })

type Known = ReadonlyMap<string, StoredSilence | undefined>

function* parseAll(entries: readonly (readonly [string, string])[], before: Known): Steps<Known> {
  const parsed = new Map<string, StoredSilence | undefined>()
  for (const [id, text] of entries) {
    const name = `${id} ${text}`
    parsed.set(name, before.has(name) ? before.get(name) : yield* parse(id, text))
  }
  return parsed
}

/** One of which not even the times can be read is ignored: better a message too many than one too few. */
function* parse(id: string, text: string): Steps<StoredSilence | undefined> {
  yield
  const { data } = z.union([stored, storedLater]).safeParse(JSON.parse(text))
  if (data === undefined) return undefined
  const { v, match: written, startsAtMs, comment } = data
  const endsAtMs = Math.min(data.endsAtMs, startsAtMs + waits.silence.maxMs)
  const own =
    v === 1 ? given({ match: yield* parseMatchInSteps(written) }) : { ofLaterVersion: true as const }
  return { id, written, startsAtMs, endsAtMs, comment, ...own }
}
