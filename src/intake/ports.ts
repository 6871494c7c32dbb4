import type { DeliveryJob } from '../alert/job.ts'

/** Where intake puts its jobs. */
export interface DeliveryQueues {
  /**
   * Resolves once every job is stored in its sink's queue. Job ids are fixed, so adding one that is there already
   * changes nothing. After any throw some may be stored and some not: add all of them again.
   */
  enqueue(jobs: readonly DeliveryJob[]): Promise<void>
}
