import type { AttemptRecord } from './records/attempt-record.ts'

/**
 * What this process knows to be acknowledged, for as long as it remembers. When Redis is away for longer than a job's
 * lock, the acknowledgement cannot be recorded, and the job comes back to be sent again: this memory answers instead.
 * (Other processes learn of it by the job's mark: `unrecorded.ts`.) Bounded; the oldest entry goes first.
 */
export interface Acknowledged {
  get(name: string): AttemptRecord | undefined
  add(name: string, record: AttemptRecord): void
}

export const acknowledgedMax = 10_000

export function createAcknowledged(entriesMax: number = acknowledgedMax): Acknowledged {
  const entries = new Map<string, AttemptRecord>()
  return {
    get: (name) => entries.get(name),
    add(name, record) {
      entries.delete(name)
      entries.set(name, record)
      const oldest = entries.keys().next()
      if (entries.size > entriesMax && !oldest.done) entries.delete(oldest.value)
    },
  }
}
