import type { SilencePreview } from '../../admin/ports.ts'
import { type Alert, alertKey } from '../../alert/alert.ts'
import { headlineOf } from '../../alert/display.ts'
import { ruleFacts } from '../../alert/fields.ts'
import { fromJobData } from '../../alert/job.ts'
import type { RuleLookup } from '../../alert/match.ts'
import { parseMatch, type WrittenMatch } from '../../alert/match-form.ts'
import { isSilenced } from '../../alert/silence.ts'
import { cut } from '../../alert/text.ts'
import { inTurns } from '../../alert/turns.ts'
import { UserError } from '../../lib/errors.ts'
import { within } from '../../lib/time-limit.ts'
import type { ActiveConfig } from '../active-config.ts'

/** How many of the alerts of the last day a silence would have held back, as far as their deliveries are still kept. */
export async function previewSilence(
  config: ActiveConfig,
  written: WrittenMatch,
  nowMs: number,
): Promise<SilencePreview> {
  const match = parseMatch(written)
  if (match === undefined) throw new UserError('This is no match.')
  const rules = await within(timeoutMs, 'reading the rules', config.routing.knownRules())
  const facts = new Map(rules.map((row) => [`${row['source']}/${row['id']}`, ruleFacts(row)]))
  const ruleOf: RuleLookup = (source, ruleId) => facts.get(`${source}/${ruleId}`)
  const ending = new AbortController()
  const sampleOf = async (alert: Alert) =>
    (await inTurns(isSilenced(alert, match, ruleOf), { readers: true, signal: ending.signal }))
      ? { source: alert.source, id: alert.id, headline: cut(headlineOf(alert), headlineCharsMax) }
      : undefined
  const tooSlow = setTimeout(() => ending.abort(new UserError(tooSlowText)), comparingMs)
  const looking = alertsSince(config, nowMs - dayMs, sampleOf)
  const looked = await within(timeoutMs, 'reading the alerts of the last day', looking).finally(() => {
    clearTimeout(tooSlow)
    ending.abort()
  })
  const matching = looked.filter((each) => each !== undefined)
  return { matching: matching.length, looked: looked.length, sample: matching.slice(0, sampleMax) }
}

const dayMs = 86_400_000
const timeoutMs = 8_000
/** Less, so that the answer says what was slow: the patterns, or else Redis. */
const comparingMs = 7_000
const tooSlowText =
  'To compare the alerts of the last day with this takes longer than 7 seconds: fewer or simpler patterns are needed.'
/** Of each sink, the newest: reading one takes about 20 microseconds. */
const jobsMax = 2_000
const sampleMax = 3
const headlineCharsMax = 100

/** What `read` makes of each. Of the alerts themselves only a part is kept in memory at a time: a row may be large. */
async function alertsSince<T>(
  { queues }: ActiveConfig,
  sinceMs: number,
  read: (alert: Alert) => Promise<T>,
): Promise<T[]> {
  const found = new Map<string, T>()
  for (const sink of queues.sinks)
    for (let from = 0; from < jobsMax; from += partMax) {
      const jobs = await queues.queue(sink).getJobs([...types], from, from + partMax - 1, false)
      if (jobs.length === 0) break
      for (const job of jobs) {
        const parsed = fromJobData(sink, job.data)
        if (!parsed.ok || parsed.job.seenAtMs < sinceMs) continue
        const key = alertKey(parsed.job.alert)
        // Of an alert for several sinks, once.
        if (!found.has(key)) found.set(key, await read(parsed.job.alert))
      }
    }
  return [...found.values()]
}

const types = ['completed', 'failed', 'wait', 'delayed', 'active'] as const
/** Of each type. */
const partMax = 25
