import type { NoticeStore } from '../../store/operators/notices.ts'
import type { UnsentNotice } from '../../store/operators/unsent-notices.ts'
import type { Notice } from './notices.ts'
import { type RulesReport, ruleNews } from './rule-notices.ts'

/**
 * Stores when troubles begin and end, with a notice of each. A step that Redis did not answer is repeated before any other
 * step of that trouble: Redis may have carried it out, and people need the notice of the beginning before that of the end.
 */
export interface Troubles {
  begin(trouble: string, againMs: number, notice: Notice): Promise<void>
  end(troubles: readonly [string, ...string[]], notice: Notice | undefined): Promise<void>
  /** Which rules became silent, or are in order again, since people were last notified. */
  rules(source: string, report: RulesReport): Promise<void>
  /** Repeats the step of this trouble that had no answer, if any. */
  repeat(trouble: string): Promise<void>
  unanswered(): readonly string[]
}

const triesMax = 5

interface TroublesOptions {
  readonly store: Pick<NoticeStore, 'begin' | 'end' | 'rules'>
  readonly toUnsent: (notice: Notice) => UnsentNotice
}

export function createTroubles({ store, toUnsent }: TroublesOptions): Troubles {
  /** The step of each trouble that had no answer; there is never more than one. */
  const unanswered = new Map<string, () => Promise<void>>()
  const repeat = async (trouble: string) => {
    await unanswered.get(trouble)?.()
    unanswered.delete(trouble)
  }
  const act = async (trouble: string, work: () => Promise<void>) => {
    await repeat(trouble)
    unanswered.set(trouble, work)
    await repeat(trouble)
  }
  return {
    begin(trouble, againMs, notice) {
      const begun = { againMs, notice: toUnsent(notice) }
      return act(trouble, () => store.begin(trouble, begun))
    },
    end(troubles, notice) {
      const unsent = notice && toUnsent(notice)
      return act(troubles[0], () => store.end(troubles, unsent))
    },
    rules: (source, report) =>
      act(`rules:${source}`, async () => {
        // Another replica may notify people of another reading at the same time.
        for (let tries = 1; tries <= triesMax; tries += 1) {
          const before = await store.rules.load(source)
          const news = ruleNews(source, before.names, report)
          if (news === undefined) return
          if (await store.rules.swap(source, before, news, news.notices.map(toUnsent))) return
        }
      }),
    repeat,
    unanswered: () => [...unanswered.keys()],
  }
}
