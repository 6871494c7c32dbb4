import { randomUUID } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { NoticeStore } from '../store/notices.ts'
import type { ReportedNames } from '../store/reported-rules.ts'
import type { Notice } from './notices.ts'
import { type RuleNews, type RulesVerdict, ruleNews } from './rule-notices.ts'

/**
 * Stores when troubles begin and end, and sends a notice of each. A step that Redis did not answer is repeated before any other
 * step of that trouble: Redis may have carried it out, and people need the notice of the beginning before that of the end.
 */
export interface Troubles {
  begin(trouble: string, againMs: number, notice: Notice): Promise<void>
  /** Returns whether a notice of its beginning was sent. */
  end(trouble: string, notice: Notice | undefined): Promise<boolean>
  /** Which rules became silent, or are in order again, since people were last notified. */
  rules(source: string, verdict: RulesVerdict): Promise<void>
  /** Repeats the step of this trouble that had no answer, if any. */
  repeat(trouble: string): Promise<void>
  unanswered(): readonly string[]
}

const triesMax = 5

interface TroublesOptions {
  readonly store: Pick<NoticeStore, 'begin' | 'end' | 'rules'>
  readonly clock: Pick<Clock, 'now'>
  readonly sendNotice: (notice: Notice) => void
}

export function createTroubles({ store, clock, sendNotice }: TroublesOptions): Troubles {
  /** The step of each trouble that had no answer; there is never more than one. */
  const unanswered = new Map<string, () => Promise<boolean>>()
  const repeat = async (trouble: string) => {
    await unanswered.get(trouble)?.()
    unanswered.delete(trouble)
  }
  const act = async (
    trouble: string,
    ask: () => Promise<boolean>,
    noticesNow: () => readonly (Notice | undefined)[],
  ) => {
    const work = async () => {
      const isOurs = await ask()
      if (isOurs) for (const notice of noticesNow()) if (notice !== undefined) sendNotice(notice)
      return isOurs
    }
    if (unanswered.has(trouble)) await repeat(trouble)
    unanswered.set(trouble, work)
    const isOurs = await work()
    unanswered.delete(trouble)
    return isOurs
  }
  return {
    async begin(trouble, againMs, notice) {
      const nowMs = clock.now()
      await act(
        trouble,
        () => store.begin(trouble, nowMs, againMs),
        () => [notice],
      )
    },
    end: (trouble, notice) =>
      act(
        trouble,
        () => store.end(trouble),
        () => [notice],
      ),
    async rules(source, verdict) {
      let change:
        | { readonly before: ReportedNames; readonly news: RuleNews; readonly call: string }
        | undefined
      const ask = async () => {
        for (let tries = 1; tries <= triesMax; tries += 1) {
          if (change === undefined) {
            const before = await store.rules.load(source)
            const news = ruleNews(source, before.names, verdict)
            if (news === undefined) return false
            change = { before, news, call: randomUUID() }
          }
          if (await store.rules.swap(source, change.before, { ...change.news, call: change.call }))
            return true
          // Another replica has notified people of another reading.
          change = undefined
        }
        return false
      }
      await act(`rules:${source}`, ask, () => change?.news.notices ?? [])
    },
    repeat,
    unanswered: () => [...unanswered.keys()],
  }
}
