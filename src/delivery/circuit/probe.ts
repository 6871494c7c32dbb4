import { within } from '../../lib/time-limit.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { AlertJob, AlertQueue } from '../queue/queues.ts'

/**
 * Chooses the alert that probes a sink that is down: in turn the one at the front of its queue, the newest, and any
 * other. So a few alerts that the sink cannot accept do not hide for long that it accepts the rest. Chooses from waiting
 * and delayed jobs, moves one to the front, and counts no attempt.
 */
export async function chooseProbe(queue: AlertQueue, turn: number, random = Math.random): Promise<boolean> {
  return within(
    commandTimeoutMs,
    'choosing a probe',
    choose(queue, turns[turn % turns.length] ?? 'front', random),
  )
}

/** If no job waits, promotes a delayed one that was tried before; false where there is none. */
export async function seekProbe(queue: AlertQueue, turn: number, random = Math.random): Promise<boolean> {
  const kind = turns[turn % turns.length] ?? 'front'
  const seek = async () => (await waitingCount(queue)) > 0 || promoteOne(queue, kind, random)
  return within(commandTimeoutMs, 'seeking a probe', seek())
}

/** Seeks a probe when its time has come. */
export class ProbeTimer {
  readonly #sending: () => number
  readonly #seek: () => Promise<void>
  #timer: NodeJS.Timeout | undefined
  /** An operator does not want to wait for the next one. */
  #isOrdered = false

  /** `sending`: how many alerts are on their way to the sink. `seek` never rejects. */
  constructor(sending: () => number, seek: () => Promise<void>) {
    this.#sending = sending
    this.#seek = seek
  }

  start(forMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#due(), forMs + slackMs)
  }

  order(): void {
    this.#isOrdered = true
    this.start(0)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#isOrdered = false
  }

  #due(): void {
    // What began before the pause says nothing of the sink now, and ends within the sink's timeout.
    if (this.#isOrdered && this.#sending() > 0) {
      this.start(orderedEveryMs)
      return
    }
    this.#isOrdered = false
    void this.#seek()
  }
}

const slackMs = 100
const orderedEveryMs = 200

const turns = ['front', 'newest', 'any'] as const
type Turn = (typeof turns)[number]

async function choose(queue: AlertQueue, turn: Turn, random: () => number): Promise<boolean> {
  const waiting = await waitingCount(queue)
  if (waiting === 0) return promoteOne(queue, turn, random)
  if (turn === 'front') return true
  if (turn === 'newest') {
    await toFront(await newest(queue, waiting))
    return true
  }
  const place = Math.floor(random() * (waiting + (await queue.getDelayedCount())))
  if (place >= waiting) return promoteOne(queue, turn, random)
  const [job] = await queue.getJobs(['wait'], place, place, false)
  await toFront(job)
  return true
}

/**
 * The newest job is at place 0, the one that is taken next at the other end. But what failed goes to place 0 as well once it is due
 * again, and of that it is known what the sink says.
 */
async function newest(queue: AlertQueue, waiting: number): Promise<AlertJob | undefined> {
  let first: AlertJob | undefined
  for (let from = 0; from < Math.min(waiting, newestOfMax); from += lookAtMax) {
    const jobs: readonly AlertJob[] = await queue.getJobs(['wait'], from, from + lookAtMax - 1, false)
    const untried = jobs.find((job) => job?.attemptsMade === 0)
    if (untried !== undefined) return untried
    first ??= jobs[0]
  }
  return first
}

async function waitingCount(queue: AlertQueue): Promise<number> {
  return (await queue.getJobCounts('wait'))['wait'] ?? 0
}

async function promoteOne(queue: AlertQueue, turn: Turn, random: () => number): Promise<boolean> {
  const delayed = await queue.getDelayedCount()
  const from = turn === 'front' ? 0 : Math.floor(random() * delayed)
  // From there on, and then from the start: the first that was tried before. An alert that only waits for its digest has
  // not failed, and would wait again.
  const jobs = [
    ...(await queue.getJobs(['delayed'], from, from + lookAtMax - 1, true)),
    ...(from === 0 ? [] : await queue.getJobs(['delayed'], 0, lookAtMax - 1, true)),
  ]
  const job = jobs.find((each) => each?.attemptsMade > 0)
  if (job === undefined) return false
  await job.promote()
  await toFront(job)
  return true
}

const lookAtMax = 20
const newestOfMax = 200

async function toFront(job: AlertJob | undefined): Promise<void> {
  // Gone or taken by now: then that send is the probe.
  await job?.changePriority({ priority: 0, lifo: true }).catch(() => {})
}
