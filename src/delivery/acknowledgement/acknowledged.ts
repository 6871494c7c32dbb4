import type { AttemptRecord } from '../queue/attempt-record.ts'

/**
 * The latest acknowledgements that this process received. When Redis is away for longer than a job's lock, BullMQ cannot
 * record the acknowledgement and hands the job out again: then it is completed from here and not sent twice.
 * (Other processes read it from the job's field: `unrecorded.ts`.) Bounded; the oldest entry is removed first.
 */
export interface Acknowledged {
  get(name: string): AttemptRecord | undefined
  add(name: string, record: AttemptRecord): void
}

export const acknowledgedMax = 10_000

export function createAcknowledged(entriesMax: number = acknowledgedMax): Acknowledged {
  const entries = new Map<string, AttemptRecord>()
  // Kept, because a new iterator passes thousands of deleted entries until it reaches the oldest.
  const oldestFirst = entries.keys()
  return {
    get: (name) => entries.get(name),
    add(name, record) {
      entries.delete(name)
      entries.set(name, record)
      if (entries.size <= entriesMax) return
      const oldest = oldestFirst.next()
      if (!oldest.done) entries.delete(oldest.value)
    },
  }
}
