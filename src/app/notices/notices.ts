import { formatDuration } from '../../lib/duration.ts'

/**
 * Notices to operators about the bridge itself, as alerts of the source `alert-bridge`: they go through the same queues
 * and sinks as every other alert, with the same retries and records. Pure.
 */
export type Notice =
  | { readonly kind: 'sink_down' | 'sink_up'; readonly sink: string; readonly reason: string }
  | { readonly kind: 'dead_letters'; readonly sink: string; readonly count: number; readonly sinceMs: number }
  | {
      readonly kind: 'source_stopped' | 'source_failing' | 'source_resumed'
      readonly sourceName: string
      readonly reason: string
    }
  | {
      readonly kind: 'rules_silent' | 'rules_well'
      readonly sourceName: string
      readonly count: number
      /** The first of them, in words. */
      readonly rules: readonly string[]
    }
  | {
      /** What the status page says is wrong has lasted for a while, or is over. `trouble`: as `troublesOf` names it. */
      readonly kind: 'trouble' | 'trouble_over'
      readonly trouble: string
      readonly text: string
      readonly sink?: string
    }
  | { readonly kind: 'rows_set_aside'; readonly sourceName: string; readonly count: number }
  | { readonly kind: 'sink_orphaned'; readonly orphan: string; readonly count: number }
  | { readonly kind: 'source_orphaned'; readonly orphan: string }
  | { readonly kind: 'source_renamed'; readonly from: string; readonly to: string }

/** The row of its alert, without an id; `sentence` writes times for people. */
export function noticeRow(
  notice: Notice,
  nowMs: number,
  sentence: (text: string) => string,
): Readonly<Record<string, unknown>> {
  const { headline, why } = wordsOf(notice, nowMs)
  return {
    kind: `bridge.${notice.kind}`,
    symbol: null,
    slug: null,
    payload: [],
    headline: sentence(headline),
    url: '',
    why: why === null ? null : sentence(why),
    ruleIds: [],
    firedAt: new Date(nowMs).toISOString(),
    notifiedAt: null,
    channels: [],
    isRead: false,
  }
}

function wordsOf(notice: Notice, nowMs: number): { headline: string; why: string | null } {
  switch (notice.kind) {
    case 'sink_down':
      return {
        headline: `Sink ${notice.sink} does not take alerts`,
        why: `${notice.reason}. Its alerts wait in the queue; it is tried again with growing pauses.`,
      }
    case 'sink_up':
      return { headline: `Sink ${notice.sink} takes alerts again`, why: 'What waited is being sent.' }
    case 'dead_letters': {
      const span = formatDuration(nowMs - notice.sinceMs)
      const what = notice.count === 1 ? '1 alert was' : `${notice.count} alerts were`
      return {
        headline: `${what} given up on at sink ${notice.sink}`,
        why: `In the last ${span}. alert-bridge dead-letters list --sink ${notice.sink} shows why; retry sends them again.`,
      }
    }
    case 'source_stopped':
      return { headline: `Source ${notice.sourceName} is stopped`, why: notice.reason }
    case 'source_failing':
      return { headline: `Source ${notice.sourceName} cannot be read`, why: notice.reason }
    case 'rows_set_aside': {
      const rows = notice.count === 1 ? '1 row' : `${notice.count} rows`
      return {
        headline: `${rows} of source ${notice.sourceName} could not be read and ${notice.count === 1 ? 'is' : 'are'} quarantined`,
        why: `alert-bridge quarantine list --source ${notice.sourceName} shows which and why; retry reads them again, drop deletes them.`,
      }
    }
    case 'rules_silent': {
      const which = notice.count === 1 ? 'A rule' : `${notice.count} rules`
      return {
        headline: `${which} of source ${notice.sourceName} may not fire`,
        why: `${listOf(notice)}. alert-bridge rules lists the rules.`,
      }
    }
    case 'rules_well': {
      const which = notice.count === 1 ? 'A rule' : `${notice.count} rules`
      return {
        headline: `${which} of source ${notice.sourceName} ${notice.count === 1 ? 'is' : 'are'} in order again`,
        why: `${listOf(notice)}.`,
      }
    }
    case 'trouble':
      return { headline: notice.text, why: 'The status page and alert-bridge status say more.' }
    case 'trouble_over':
      return { headline: overText(notice.trouble), why: null }
    case 'source_resumed':
      return { headline: `Source ${notice.sourceName} is polled again`, why: null }
    case 'sink_orphaned': {
      const { orphan, count } = notice
      const what = count === 1 ? '1 alert' : `${count} alerts`
      return {
        headline: `Sink ${orphan} is not in the config, and ${what} of it are left`,
        why: `They wait until the name comes back. alert-bridge orphans list ${orphan} shows them; orphans move ${orphan} --to SINK sends them elsewhere, orphans drop ${orphan} deletes them.`,
      }
    }
    case 'source_orphaned': {
      const { orphan } = notice
      return {
        headline: `Source ${orphan} is not in the config any more`,
        why: `Its data is kept. Where another source is the same account, alert-bridge orphans move ${orphan} --to SOURCE carries it over, so that nothing is sent again or passed over; orphans drop ${orphan} deletes it.`,
      }
    }
    case 'source_renamed':
      return {
        headline: `Source ${notice.to} goes on with the data of source ${notice.from}`,
        why: 'It is the same account under a new name: what was spent, seen and learned counts on.',
      }
    default:
      return notice satisfies never
  }
}

function overText(trouble: string): string {
  const [what, name] = trouble.split(':')
  switch (what) {
    case 'late':
      return `Sink ${name} is fast enough again`
    case 'refuses':
      return `Sink ${name} does not refuse everything any more`
    case 'thin':
      return `Source ${name} has enough units again`
    case 'reload':
      return 'A config was taken again'
    default:
      return 'All processes have the same config again'
  }
}

function listOf({ rules, count }: Extract<Notice, { kind: 'rules_silent' | 'rules_well' }>): string {
  const more = count > rules.length ? `; and ${count - rules.length} more` : ''
  return `${rules.join('; ')}${more}`
}
