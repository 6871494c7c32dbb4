import type { SilencePreview } from '../../admin/ports.ts'
import { type Alert, alertKey } from '../../alert/alert.ts'
import { headlineOf } from '../../alert/display.ts'
import { ruleFacts } from '../../alert/fields.ts'
import { fromJobData } from '../../alert/job.ts'
import { matchAlert, type RuleLookup } from '../../alert/match.ts'
import { parseMatch, type WrittenMatch } from '../../alert/match-form.ts'
import { cut } from '../../alert/text.ts'
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
  const [alerts, rules] = await Promise.all([
    within(timeoutMs, 'reading the alerts of the last day', alertsSince(config, nowMs - dayMs)),
    config.routing.knownRules(),
  ])
  const facts = new Map(rules.map((row) => [`${row['source']}/${row['id']}`, ruleFacts(row)]))
  const ruleOf: RuleLookup = (source, ruleId) => facts.get(`${source}/${ruleId}`)
  const matching = alerts.filter((alert) => matchAlert(alert, match, ruleOf).kind === 'matches')
  return {
    matching: matching.length,
    looked: alerts.length,
    sample: matching.slice(0, sampleMax).map((alert) => {
      return { source: alert.source, id: alert.id, headline: cut(headlineOf(alert), headlineCharsMax) }
    }),
  }
}

const dayMs = 86_400_000
const timeoutMs = 8_000
/** Of each sink, the newest: reading one takes about 20 microseconds. */
const jobsMax = 2_000
const sampleMax = 3
const headlineCharsMax = 100

async function alertsSince({ queues }: ActiveConfig, sinceMs: number): Promise<Alert[]> {
  const found = new Map<string, Alert>()
  for (const sink of queues.sinks) {
    const jobs = await queues
      .queue(sink)
      .getJobs(['completed', 'failed', 'wait', 'delayed', 'active'], 0, jobsMax - 1, false)
    for (const job of jobs) {
      const parsed = fromJobData(sink, job.data)
      if (parsed.ok && parsed.job.seenAtMs >= sinceMs) found.set(alertKey(parsed.job.alert), parsed.job.alert)
    }
  }
  return [...found.values()]
}
