import type { Clock } from '../../lib/clock.ts'
import { settlesWithin, within } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { ClockWatch } from '../delays/clock-watch.ts'
import type { LockAges } from '../queue/lock-ages.ts'
import type { AlertQueue } from '../queue/queues.ts'

/** The jobs that one lane has taken and not finished, and the sends that run for them. */
interface RunningSend {
  readonly controller: AbortController
  readonly done: Promise<unknown>
  /** False where BullMQ does not renew the job's lock any more: it ended doing so with a send of before. */
  readonly renewed: boolean
  /** Renews the job's lock; false when it is not ours any more. */
  renew(): Promise<boolean>
}

interface JobLocks {
  readonly redis: RedisClient
  readonly queue: Pick<AlertQueue, 'toKey'>
  readonly lockAges: Pick<LockAges, 'isOurs'>
  readonly clock: Clock
}

export class RunningJobs {
  readonly #locks: JobLocks
  readonly #clockWatch: ClockWatch
  readonly #sends = new Map<string, RunningSend>()
  readonly #begun = new Set<string>()
  /** Sends whose locks BullMQ does not renew. */
  #unrenewed = new Set<RunningSend>()
  #jobs = 0
  #taken = 0

  constructor(locks: JobLocks) {
    this.#locks = locks
    this.#clockWatch = new ClockWatch(locks.clock)
  }

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
    if (!send.renewed) this.#unrenewed.add(send)
    try {
      return await send.done
    } finally {
      if (this.#sends.get(jobId) === send) this.#sends.delete(jobId)
      this.#begun.delete(jobId)
    }
  }

  /** From now on the receiver may have it. */
  begins(jobId: string): void {
    this.#begun.add(jobId)
  }

  isSending(jobId: string): boolean {
    return this.#sends.has(jobId)
  }

  /**
   * For a job that is handed out again: resolves once the send of it is over that runs now; true at once where none does. Of several
   * that wait for it, one goes first: ask `isSending` then.
   */
  async sendOver(jobId: string): Promise<boolean> {
    const send = this.#sends.get(jobId)
    if (send === undefined) return true
    await this.#callOff(jobId, send)
    await send.done.catch(() => {})
    return false
  }

  /** A send that has not begun, and whose lock is gone: it would wait for its turn only to find that the job is not its own. */
  async #callOff(jobId: string, { controller, renew }: RunningSend): Promise<void> {
    if (this.#begun.has(jobId)) return
    const isOurs = await renewed(renew())
    if (!isOurs && !this.#begun.has(jobId)) controller.abort(new Error('handed out again'))
  }

  running(): Promise<unknown>[] {
    return [...this.#sends.values()].map(({ done }) => done)
  }

  /** Resolves when no send has run for so long, or once `ended` is settled. */
  async quiet(forMs: number, ended: Promise<unknown>): Promise<void> {
    let quietMs = 0
    while (quietMs < forMs && !(await settlesWithin(lookEveryMs, ended)))
      quietMs = this.sends === 0 ? quietMs + lookEveryMs : 0
  }

  abort(why: string, jobIds: Iterable<string> = [...this.#sends.keys()]): void {
    for (const id of jobIds) this.#sends.get(id)?.controller.abort(new Error(why))
  }

  /**
   * Breaks off what has not begun yet, and the sends of jobs that another process has now. Where nobody has one, as where Redis came
   * back without its last second, a send that has begun goes on: its answer counts. Never rejects: BullMQ asks again.
   */
  async lostLocks(jobIds: readonly string[]): Promise<void> {
    const { redis, queue, lockAges } = this.#locks
    const tokens = await redis.mget(jobIds.map((id) => queue.toKey(`${id}:lock`))).catch(() => [])
    const isElsewhere = (token: string | null | undefined) =>
      typeof token === 'string' && !lockAges.isOurs(token)
    const ended = jobIds.filter((id, at) => !this.#begun.has(id) || isElsewhere(tokens[at]))
    this.abort('the lock was lost', ended)
  }

  /**
   * To be called every few seconds, also while the lane stops: by how much the clock was set back since the last call. BullMQ counts the
   * age of a lock by the wall clock: after that was set back, it does not renew older locks.
   */
  keepLocks(): number {
    const backMs = this.#clockWatch.setBackMs()
    if (backMs > 0) this.#unrenewed = new Set(this.#sends.values())
    void this.#renewLocks()
    return backMs
  }

  async #renewLocks(): Promise<void> {
    for (const send of this.#unrenewed) {
      const [id] = [...this.#sends].find(([, each]) => each === send) ?? []
      if (id === undefined) this.#unrenewed.delete(send)
      else if (!(await renewed(send.renew()))) await this.lostLocks([id])
    }
  }
}

/** Whether a lock is ours, also where Redis does not say. */
function renewed(renewing: Promise<boolean>): Promise<boolean> {
  return within(commandTimeoutMs, 'renewing the lock', renewing).catch(() => true)
}

const lookEveryMs = 100
