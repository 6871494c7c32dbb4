import type { AlertWorker } from './worker.ts'

/**
 * BullMQ's check for jobs that a process took and did not finish, because it is gone: it gives back those that have no lock
 * any more. BullMQ alone would run it all the time; here it runs only while it may find one. Returns what ends it.
 */
export function checkStalled(worker: AlertWorker, everyMs: number, isNeeded: () => boolean): () => void {
  let timer: NodeJS.Timeout | undefined
  let ended = false
  const check = async (): Promise<void> => {
    if (isNeeded())
      await worker
        .getBackend()
        .moveStalledJobsToWait()
        .catch((error: Error) => worker.emit('error', error))
    // Counted from the answer: Redis leaves out a check that comes sooner after the one before.
    if (!ended) timer = setTimeout(() => void check(), everyMs)
  }
  void check()
  return () => {
    ended = true
    clearTimeout(timer)
  }
}

/** Whether a job may be taken, in whichever process. */
export class TakenJobs {
  /** Nothing is known yet. */
  #may = true
  #taken = 0

  get may(): boolean {
    return this.#may
  }

  /** This process takes one. */
  take(): void {
    this.#may = true
    this.#taken += 1
  }

  /**
   * `view` was asked for just now. A lock lasts for longer than the time between two looks, so a job that another process takes is seen
   * before its lock can run out. Without an answer, a job may be taken: Redis may have gone back to an earlier state.
   */
  async look(view: Promise<{ readonly active: number }>): Promise<void> {
    const taken = this.#taken
    const active = await view.then((seen) => seen.active).catch(() => undefined)
    this.#may = active !== 0 || this.#taken !== taken
  }
}
