/** The jobs that one lane has taken and not finished, and the sends that run for them. */
interface RunningSend {
  readonly controller: AbortController
  readonly done: Promise<unknown>
  /** Renews the job's lock; false when it is not ours any more. */
  renew(): Promise<boolean>
}

export class RunningJobs {
  readonly #sends = new Map<string, RunningSend>()
  /** Sends whose locks BullMQ does not renew. */
  #unrenewed = new Set<RunningSend>()
  #jobs = 0
  #taken = 0

  /** Jobs, also those that wait for a send of before to be over. */
  get jobs(): number {
    return this.#jobs
  }

  /** How many jobs there were ever. */
  get taken(): number {
    return this.#taken
  }

  get sends(): number {
    return this.#sends.size
  }

  async track<T>(work: () => Promise<T>): Promise<T> {
    this.#taken += 1
    this.#jobs += 1
    try {
      return await work()
    } finally {
      this.#jobs -= 1
    }
  }

  async run<T>(jobId: string, send: RunningSend & { readonly done: Promise<T> }): Promise<T> {
    this.#sends.set(jobId, send)
    try {
      return await send.done
    } finally {
      if (this.#sends.get(jobId) === send) this.#sends.delete(jobId)
    }
  }

  isSending(jobId: string): boolean {
    return this.#sends.has(jobId)
  }

  /** Resolves once the send of this job is over that runs now. Of several that wait for it, one goes first: ask `isSending` then. */
  async sendOver(jobId: string): Promise<void> {
    await this.#sends.get(jobId)?.done.catch(() => {})
  }

  running(): Promise<unknown>[] {
    return [...this.#sends.values()].map(({ done }) => done)
  }

  abort(why: string, jobIds: Iterable<string> = [...this.#sends.keys()]): void {
    for (const id of jobIds) this.#sends.get(id)?.controller.abort(new Error(why))
  }

  /** BullMQ counts the age of a lock by the wall clock: after that was set back, it does not renew older locks. */
  clockSetBack(): void {
    this.#unrenewed = new Set(this.#sends.values())
  }

  async renewLocks(): Promise<void> {
    for (const send of this.#unrenewed) {
      if (![...this.#sends.values()].includes(send)) this.#unrenewed.delete(send)
      else if (!(await send.renew().catch(() => true))) send.controller.abort(new Error('the lock was lost'))
    }
  }
}
