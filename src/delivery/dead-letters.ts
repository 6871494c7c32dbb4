import { type DeliveryView, viewOfJob } from './delivery-view.ts'
import { resend } from './resend.ts'
import {
  type EndedOptions,
  type Handled,
  type Selected,
  type Selection,
  select,
  selectedMax,
} from './selection.ts'
import { within } from './time-limit.ts'

/**
 * What could not be delivered: the failed jobs of the queues, nothing beside them, so that nothing can be lost on the
 * way here. They are kept for 90 days.
 */
export interface DeadLetters {
  /** Newest first; `sinceMs` is when the alert was given up on. */
  list(query: { limit: number; sink?: string; sinceMs?: number }): Promise<DeadLetter[]>
  /** Sends them again with a full schedule, the same `webhook-id` and no regard to their age. */
  retry(selection: Selection): Promise<Handled>
  /** Forgets them. An alert that the feed shows again is not sent again: it was seen. */
  drop(selection: Selection): Promise<Handled>
}

export interface DeadLetter extends DeliveryView {
  /** The word of the closed union, or `stalled` for an alert that took its process down again and again. */
  readonly reason: string
}

export function createDeadLetters(options: EndedOptions): DeadLetters {
  const { clock, limit = selectedMax } = options
  const find = (selection: Selection, count: number) =>
    select(selection, ['failed'], ({ finishedOn }) => finishedOn ?? 0, count, options)
  return {
    async list({ limit: count, sink, sinceMs }) {
      const where = { ...(sink === undefined ? {} : { sink }), ...(sinceMs === undefined ? {} : { sinceMs }) }
      // Each sink gives its newest; only then is it known which are the newest of all.
      const sinks = sink === undefined ? options.queues.sinks : [sink]
      const found = await Promise.all(
        sinks.map((each) => find({ ...where, sink: each }, Math.min(count, limit))),
      )
      const letters = found.flat().map(({ sink: name, job }) => letterOf(viewOfJob(name, job, 'failed')))
      return letters.sort((a, b) => (b.endedAtMs ?? 0) - (a.endedAtMs ?? 0)).slice(0, count)
    },
    async retry(selection) {
      const found = await find(selection, limit)
      return { handled: await resend(found, clock.now()), more: found.length === limit }
    },
    async drop(selection) {
      const found = await find(selection, limit)
      return { handled: await drop(found), more: found.length === limit }
    },
  }
}

const dropTimeoutMs = 10_000

function letterOf(view: DeliveryView): DeadLetter {
  const word = /^(\w+): /.exec(view.failure ?? '')?.[1]
  return { ...view, reason: word ?? (view.failure?.startsWith('job stalled') ? 'stalled' : 'unknown') }
}

async function drop(found: readonly Selected[]): Promise<number> {
  let dropped = 0
  for (const { job } of found) {
    const removed = await within(dropTimeoutMs, 'dropping a dead letter', job.remove()).then(
      () => true,
      // Somebody else was faster.
      (error: Error) => {
        if (!/could not be removed/.test(error.message)) throw error
        return false
      },
    )
    if (removed) dropped += 1
  }
  return dropped
}
