import * as z from 'zod'
import { within } from '../../lib/time-limit.ts'
import { stepOn } from '../bounded-steps.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { AlertQueue } from '../queue/queues.ts'
import { cursorInstant, readCursor, writeCursor } from '../records/cursor.ts'
import type { PortionOptions } from '../records/portion.ts'
import type { PortionEnd, PortionOrder, SampleAlert } from '../records/selection.ts'

/**
 * One bounded portion of work on all that a queue has to send or has given up on, the oldest of each state first. What is
 * done leaves the queue, so the place is only how many of a state had to be left in it. Asking for a portion twice does
 * nothing twice.
 */
export interface OrphanPortion extends OrphanTally, PortionEnd {}

export interface OrphanTally {
  handled: number
  /** Were moved to a sink that had been given the alert already, or had been acknowledged by their own. */
  there: number
  /** Gone by the time that they were reached. */
  gone: number
  /** Left where they are: another process is sending them at this moment. */
  busy: number
  /** Left where they are: this version cannot read them. */
  unreadable: number
  looked: number
  /** Only of a dry run: those of the portion that fired last, each once. */
  sample?: readonly SampleAlert[]
}

const orphanStates = ['active', 'wait', 'delayed', 'failed'] as const
export type OrphanState = (typeof orphanStates)[number]

/** Does it to some of one state; resolves to how many of them stay in the queue. */
export type OrphanStep = (
  ids: readonly string[],
  state: OrphanState,
  atMs: number,
  tally: OrphanTally,
) => Promise<number>

const batchMax = 100
const stepTimeoutMs = 10_000

export async function runOrphanPortion(
  queue: AlertQueue,
  order: PortionOrder,
  options: PortionOptions,
  step: OrphanStep,
): Promise<OrphanPortion> {
  const begun =
    order.cursor === undefined
      ? await begin(queue, order.atMs, options)
      : readCursor(progressSchema, order.cursor)
  const tally: OrphanTally = { handled: 0, there: 0, gone: 0, busy: 0, unreadable: 0, looked: 0 }
  const progress = await stepOn(begun, { ...options, limit: order.limit }, tally, async (at, left) => {
    for (let state = at.state; ; state += 1) {
      const name = orphanStates[state]
      if (name === undefined) return undefined
      const stay = state === at.state ? at.stay : 0
      const ids = await oldest(queue, name, stay, Math.min(left, batchMax), options)
      if (ids.length === 0) continue
      const stayed = await within(stepTimeoutMs, 'working at an orphan', step(ids, name, at.atMs, tally))
      tally.looked += ids.length
      return { ...at, state, stay: stay + stayed }
    }
  })
  const { atMs, total } = begun
  return { ...tally, total, atMs, ...(progress === undefined ? {} : { cursor: writeCursor(progress) }) }
}

type Progress = z.infer<typeof progressSchema>
const progressSchema = z.object({
  v: z.literal(1),
  atMs: cursorInstant,
  total: z.number(),
  state: z.number().int().min(0),
  stay: z.number().int().min(0),
})

async function begin(
  queue: AlertQueue,
  atMs: number | undefined,
  { queues: { redis }, clock }: PortionOptions,
): Promise<Progress> {
  const counting = orphanStates.map((state) =>
    isList(state) ? redis.llen(queue.toKey(state)) : redis.zcard(queue.toKey(state)),
  )
  const counts = await within(commandTimeoutMs, 'counting an orphan', Promise.all(counting))
  const total = counts.reduce((sum, count) => sum + count, 0)
  return { v: 1, atMs: atMs ?? clock.now(), total, state: 0, stay: 0 }
}

/** New alerts come in at the head of a list, and at the end of a set. */
async function oldest(
  queue: AlertQueue,
  state: OrphanState,
  skip: number,
  count: number,
  { queues: { redis } }: PortionOptions,
): Promise<string[]> {
  const key = queue.toKey(state)
  if (!isList(state)) {
    const reading = redis.zrange(key, String(skip), String(skip + count - 1))
    return within(commandTimeoutMs, 'reading an orphan', reading)
  }
  const ids = await within(
    commandTimeoutMs,
    'reading an orphan',
    redis.lrange(key, -(skip + count), -(skip + 1)),
  )
  return ids.reverse()
}

function isList(state: OrphanState): boolean {
  return state === 'wait' || state === 'active'
}
