import type { SilencePreview } from '../../admin/ports.ts'
import { type Alert, alertKey, noticeSource, parseRow } from '../../alert/alert.ts'
import { fromJobData } from '../../alert/job.ts'
import { ruleLookup } from '../../alert/match/fields.ts'
import { parseMatch, type WrittenMatch } from '../../alert/match/match-form.ts'
import { inTurns } from '../../alert/match/turns.ts'
import { isSilenced } from '../../alert/silence.ts'
import { headlineOf } from '../../alert/text/display.ts'
import { cut } from '../../alert/text/text.ts'
import type { SinkQueues } from '../../delivery/queue/queues.ts'
import { UserError } from '../../lib/errors.ts'
import { within } from '../../lib/time-limit.ts'
import type { WithheldStore } from '../../store/walk/withheld.ts'
import type { ActiveConfig } from '../active-config.ts'

/** How many alerts of the last day a silence would have matched, as far as they are kept: also those that were held back. */
export async function previewSilence(
  config: ActiveConfig,
  written: WrittenMatch,
  nowMs: number,
): Promise<SilencePreview> {
  const match = parseMatch(written)
  if (match === undefined) throw new UserError('This is no match.')
  const rules = await within(timeoutMs, 'reading the rules', config.routing.knownRules())
  const ruleOf = ruleLookup(rules)
  const ending = new AbortController()
  const sampleOf = async (alert: Alert) =>
    (await inTurns(isSilenced(alert, match, ruleOf), { readers: true, signal: ending.signal }))
      ? { source: alert.source, id: alert.id, headline: cut(headlineOf(alert), headlineCharsMax) }
      : undefined
  const tooSlow = setTimeout(() => ending.abort(new UserError(tooSlowText)), comparingMs)
  const looking = alertsSince(config, nowMs - dayMs, sampleOf)
  const { found, isAll } = await within(timeoutMs, 'reading the alerts of the last day', looking).finally(
    () => {
      clearTimeout(tooSlow)
      ending.abort()
    },
  )
  const matching = found.filter((each) => each !== undefined)
  return {
    matching: matching.length,
    looked: found.length,
    sample: matching.slice(0, sampleMax),
    ...(isAll ? {} : { partial: true as const }),
  }
}

const dayMs = 86_400_000
const timeoutMs = 8_000
/** Less, so that the answer says what was slow: the patterns, or else Redis. */
const comparingMs = 7_000
const tooSlowText =
  'To compare the alerts of the last day with this takes longer than 7 seconds: fewer or simpler patterns are needed.'
/** Some 25,000 deliveries and more: reading one takes 20 to 150 microseconds. */
const readingMs = 4_000
const sampleMax = 3
const headlineCharsMax = 100

/**
 * What `read` makes of each, and whether these are all: what is read in time is the newest of each sink and source. Of the alerts
 * themselves only a part is kept in memory at a time: a row may be large.
 */
async function alertsSince<T>(
  { queues, routing, sources }: ActiveConfig,
  sinceMs: number,
  read: (alert: Alert) => Promise<T>,
): Promise<{ found: T[]; isAll: boolean }> {
  const known = new Map<string, T>()
  const left = new Set<AsyncGenerator<readonly Alert[]>>([
    ...queues.sinks.map((sink) => jobsSince(sink, queues, sinceMs)),
    ...[...sources.keys()].map((source) => withheldSince(source, routing.withheldIn(source), sinceMs)),
  ])
  let readMs = 0
  while (left.size > 0 && readMs < readingMs)
    for (const jobs of left) {
      const startMs = performance.now()
      const { done, value } = await jobs.next()
      readMs += performance.now() - startMs
      if (done) left.delete(jobs)
      for (const alert of value ?? []) {
        const key = alertKey(alert)
        // Of an alert for several sinks, once; a notice is held back by no silence.
        if (!known.has(key) && alert.source !== noticeSource) known.set(key, await read(alert))
      }
    }
  return { found: [...known.values()], isAll: left.size === 0 }
}

/** In parts; what is on its way first, since it may end meanwhile. */
async function* jobsSince(
  sink: string,
  { redis, queue: queueOf }: SinkQueues,
  sinceMs: number,
): AsyncGenerator<Alert[]> {
  const queue = queueOf(sink)
  const sizeOf = (id: string) => redis.hstrlen(queue.toKey(id), 'data')
  // Of BullMQ's own reading most is an object for each job, of which two fields are needed.
  const read = (id: string) => redis.hmget(queue.toKey(id), 'data', 'finishedOn')
  for (const type of types)
    for (let from = 0; ; from += listedMax) {
      const ids = await queue.getRanges([type], from, from + listedMax - 1, false)
      let areOld = true
      for (const part of partsOf(ids, await Promise.all(ids.map(sizeOf)))) {
        const jobs = await Promise.all(part.map(read))
        yield jobs.flatMap(([text]) => {
          // One that was removed meanwhile has no data.
          const each = fromJobData(sink, JSON.parse(text ?? 'null'))
          return each.ok && each.job.seenAtMs >= sinceMs ? [each.job.alert] : []
        })
        areOld &&= jobs.every(([, endedMs]) => Number(endedMs ?? Infinity) < sinceMs)
      }
      // Of those that have ended, the last to end come first, and an alert ends after it was seen.
      if (areOld) break
    }
}

/** What is read together: as many as come to `partBytesMax`, and at least one, since a row may be as large as a page of the feed. */
function partsOf(ids: readonly string[], sizes: readonly number[]): string[][] {
  const parts: string[][] = []
  let bytes = Infinity
  for (const [at, id] of ids.entries()) {
    const size = sizes[at] ?? 0
    bytes += size
    if (bytes > partBytesMax) [parts[parts.length], bytes] = [[id], size]
    else parts.at(-1)?.push(id)
  }
  return parts
}

async function* withheldSince(
  source: string,
  store: WithheldStore,
  sinceMs: number,
): AsyncGenerator<Alert[]> {
  for await (const records of store.since(sinceMs))
    yield records.flatMap(({ row }) => {
      const parsed = parseRow(source, row)
      return parsed.ok ? [parsed.alert] : []
    })
}

const types = ['wait', 'delayed', 'active', 'failed', 'completed'] as const
const listedMax = 200
const partBytesMax = 2 ** 20
