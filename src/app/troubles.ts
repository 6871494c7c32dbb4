import type { Clock } from '../lib/clock.ts'
import type { NoticeStore } from '../store/notices.ts'
import type { Notice } from './notices.ts'

/**
 * The beginnings and ends of troubles that people are notified of. One that Redis did not answer is repeated before
 * anything else about that trouble: it may have been carried out, and an end without its beginning says nothing to people.
 */
export interface Troubles {
  begin(trouble: string, againMs: number, notice: Notice): Promise<void>
  /** Returns whether people had been notified of it. */
  end(trouble: string, notice: Notice | undefined): Promise<boolean>
  /** What of this trouble had no answer. */
  repeat(trouble: string): Promise<void>
  unanswered(): readonly string[]
}

interface TroublesOptions {
  readonly store: Pick<NoticeStore, 'begin' | 'end'>
  readonly clock: Pick<Clock, 'now'>
  readonly sendNotice: (notice: Notice) => void
}

export function createTroubles({ store, clock, sendNotice }: TroublesOptions): Troubles {
  /** By trouble, what is to be done next: never more than one thing. */
  const unanswered = new Map<string, () => Promise<boolean>>()
  const repeat = async (trouble: string) => {
    await unanswered.get(trouble)?.()
    unanswered.delete(trouble)
  }
  const act = async (trouble: string, ask: () => Promise<boolean>, notice: Notice | undefined) => {
    const work = async () => {
      const isOurs = await ask()
      if (isOurs && notice !== undefined) sendNotice(notice)
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
      await act(trouble, () => store.begin(trouble, nowMs, againMs), notice)
    },
    end: (trouble, notice) => act(trouble, () => store.end(trouble), notice),
    repeat,
    unanswered: () => [...unanswered.keys()],
  }
}
