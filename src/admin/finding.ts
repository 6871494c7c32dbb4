import { formatDuration } from '../lib/duration.ts'
import { describeOrphan, type OrphanView } from './views/orphan-view.ts'

/**
 * What a finding of the verdict says: a stable code, and what its sentence is made of. Here is the English sentence, which the
 * JSON API, /readyz, `status`, notices and the page in English show; the page in another language makes its own from the same.
 */
export type Saying = {
  readonly [C in FindingCode]: { readonly code: C; readonly data: FindingData[C] }
}[FindingCode]

/** A sentence for each code, in one language. */
export type FindingWords<Text, More extends unknown[] = []> = {
  readonly [C in FindingCode]: (data: FindingData[C], ...more: More) => Text
}

/** A `reason` is from elsewhere: an API, a receiver, Redis, an operator, or a sentence of the bridge in English. */
interface FindingData {
  readonly draining: Nothing
  readonly redis_away: { readonly reason: string | null }
  /** What is wrong with the settings of a Redis that answers. */
  readonly redis_unsafe: { readonly reason: string }
  readonly redis_uncounted: Nothing
  readonly rows_quarantined: { readonly count: number }
  /** The first mistake, and how many more there are. */
  readonly reload_refused: { readonly reason: string; readonly more: number }
  readonly configs_differ: {
    readonly processes: readonly { readonly name: string; readonly role: string }[]
  }
  readonly orphaned: OrphanView
  readonly source_starting: OfSource & { readonly reason: string }
  readonly source_crashed: OfSource & { readonly reason: string }
  readonly source_stuck: OfSource & { readonly reason: string }
  readonly source_redis_away: OfSource & { readonly reason: string }
  readonly source_failing: OfSource & { readonly reason: string | null }
  readonly source_overdue: OfSource & { readonly seconds: number }
  readonly source_stopped: OfSource & { readonly reason: string | null }
  readonly source_budget_spent: OfSource
  readonly source_retrying: OfSource & { readonly reason: string | null }
  /** null where nothing is wrong: it only takes more polls. */
  readonly source_catching_up: OfSource & { readonly reason: string | null }
  readonly source_queues_full: OfSource & { readonly reason: string | null }
  readonly source_unpolled: OfSource
  readonly source_rules_silent: OfSource & { readonly count: number }
  readonly source_budget_thin: OfSource & { readonly reason: string }
  readonly sink_refuses: OfSink & { readonly count: number; readonly reason: string | null }
  readonly sink_slow: OfSink & {
    readonly waiting: number
    readonly oldestSeconds: number
    /** null where nothing was sent meanwhile. */
    readonly drainSeconds: number | null
    /** When the pause ends that the sink asked for, where there is one. */
    readonly heldUntil: string | null
  }
  readonly sink_puts_off: OfSink & { readonly delayed: number; readonly seconds: number }
  readonly sink_failing: OfSink & { readonly reason: string | null; readonly queued: number }
  readonly sink_stuck: OfSink & { readonly reason: string | null }
  readonly sink_paused: OfSink & {
    /** ISO 8601; null without an end. */
    readonly until: string | null
    readonly reason: string | null
    readonly queued: number
  }
  readonly sink_dead_letters: OfSink & { readonly count: number }
}

type FindingCode = keyof FindingData
type Nothing = Readonly<Record<never, never>>
interface OfSource {
  readonly source: string
}
interface OfSink {
  readonly sink: string
}

export function findingText({ code, data }: Saying): string {
  return (texts[code] as (data: Saying['data']) => string)(data)
}

const texts: FindingWords<string> = {
  draining: () => 'The bridge is draining: it stops',
  redis_away: ({ reason }) => `Redis does not answer${inBrackets(reason)}: polling and sending wait for it`,
  redis_unsafe: ({ reason }) => reason,
  redis_uncounted: () =>
    'Redis is too slow or refuses: some of what waits or was given up on could not be counted',
  rows_quarantined: ({ count }) =>
    `${count === 1 ? '1 row of the feed could not be read and is' : `${countText(count)} rows of the feed could not be read and are`} quarantined (alert-bridge quarantine lists, retries and drops)`,
  reload_refused: ({ reason, more }) =>
    `The last reload was refused, the config before it goes on: ${reason}${more > 0 ? ` and ${more} more` : ''}`,
  configs_differ: ({ processes }) =>
    `Another config is in force beside the one of this process: ${processes.map(({ name, role }) => `${name} (${role})`).join('; ')}`,
  orphaned: (orphan) => {
    const text = describeOrphan(orphan)
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
  },
  source_starting: ({ source, reason }) => `Source ${source}: ${reason}`,
  source_crashed: ({ source, reason }) => `Source ${source}: ${reason}`,
  source_stuck: ({ source, reason }) => `Source ${source}: ${reason}`,
  source_redis_away: ({ source, reason }) => `Source ${source}: ${reason}`,
  source_failing: ({ source, reason }) => `Source ${source} fails at every poll${behind(reason)}`,
  source_overdue: ({ source, seconds }) =>
    `Source ${source} should have polled ${formatDuration(seconds * 1_000)} ago`,
  source_stopped: ({ source, reason }) => `Source ${source} is stopped${behind(reason)}`,
  source_budget_spent: ({ source }) =>
    `Source ${source} has spent the budget of the day and waits for the reset`,
  source_retrying: ({ source, reason }) =>
    `Source ${source} cannot be polled now; the bridge tries again${behind(reason)}`,
  source_catching_up: ({ source, reason }) =>
    `Source ${source} is behind${reason ? `, and a page beneath the first fails${behind(reason)}` : ' and catching up'}`,
  source_queues_full: ({ source, reason }) => `Source ${source} waits${behind(reason)}`,
  source_unpolled: ({ source }) => `Source ${source} was polled by no process yet, as far as Redis shows`,
  source_rules_silent: ({ source, count }) =>
    `Source ${source} has ${count === 1 ? 'a rule' : `${countText(count)} rules`} that may not fire`,
  source_budget_thin: ({ source, reason }) => `Source ${source} has too few units: ${reason}`,
  sink_refuses: ({ sink, count, reason }) =>
    `Sink ${sink} refuses everything: the last ${countText(count)} alerts were given up on (${reason ?? 'no reason known'})`,
  sink_slow: ({ sink, waiting, oldestSeconds, drainSeconds, heldUntil }) => {
    const pace =
      drainSeconds === null
        ? 'nothing was sent meanwhile'
        : `at this pace for ${formatDuration(drainSeconds * 1_000)} more`
    const why = heldUntil === null ? pace : `the sink asked for a pause until ${heldUntil}`
    return `Sink ${sink} is too slow: ${waitersText(waiting)}, the oldest for ${formatDuration(oldestSeconds * 1_000)}; ${why}`
  },
  sink_puts_off: ({ sink, delayed, seconds }) =>
    `Sink ${sink} puts everything off: ${waitersText(delayed)} for another attempt, one of them for ${formatDuration(seconds * 1_000)}, and nothing was acknowledged meanwhile`,
  sink_failing: ({ sink, reason, queued }) =>
    `Sink ${sink} is failing and given a rest${inBrackets(reason)}${waitText(queued)}`,
  sink_stuck: ({ sink, reason }) => `Sink ${sink} is stuck${behind(reason)}`,
  sink_paused: ({ sink, until, reason, queued }) =>
    `Sink ${sink} is paused${until === null ? '' : ` until ${until}`}${inBrackets(reason)}${waitText(queued)}`,
  sink_dead_letters: ({ sink, count }) =>
    `Sink ${sink} has ${countText(count)} dead ${count === 1 ? 'letter' : 'letters'}`,
}

export const findingCodes = Object.keys(texts) as FindingCode[]

function inBrackets(reason: string | null): string {
  return reason ? ` (${reason})` : ''
}

function behind(reason: string | null): string {
  return reason ? `: ${reason}` : ''
}

function waitText(queued: number): string {
  return queued > 0 ? `; ${waitersText(queued)}` : ''
}

function waitersText(count: number): string {
  return `${countText(count)} ${count === 1 ? 'waits' : 'wait'}`
}

function countText(count: number): string {
  return count.toLocaleString('en-US')
}
