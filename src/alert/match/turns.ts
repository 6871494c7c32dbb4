import { setImmediate as untilOthersRan } from 'node:timers/promises'

/**
 * Work in steps, each of which ends soon. What compares alerts with patterns is written so, because somebody's patterns times
 * somebody's texts can take seconds: nothing else runs in this process for longer than `sliceMs` and one step.
 */
export type Steps<T> = Generator<undefined, T, undefined>

/** How long steps run before others have their turn: polls, sends, probes, heartbeats. */
const sliceMs = 10

/** Where nothing else waits: in a command, in a test. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/**
 * Lets others run in between. However many work so at the same time, one has each turn; all that is for `readers` (what a person
 * asked for and waits for, and texts from templates) has every second turn at most. Rejects once the signal is aborted.
 */
export async function inTurns<T>(steps: Steps<T>, options: TurnOptions = {}): Promise<T> {
  for (;;) {
    if (isSliceOver()) await untilTurn(options)
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** Before work of one step. */
export async function untilTurn({ readers = false, signal }: TurnOptions): Promise<void> {
  if (!isSliceOver()) return
  await (readers ? nextReadersTurn() : nextTurn())
  signal?.throwIfAborted()
  sliceEndsMs = performance.now() + sliceMs
}

interface TurnOptions {
  readonly readers?: boolean
  readonly signal?: AbortSignal | undefined
}

function isSliceOver(): boolean {
  return performance.now() >= sliceEndsMs
}

let sliceEndsMs = 0
let lastTurn = Promise.resolve()
let lastReadersTurn = Promise.resolve()

function nextTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => untilOthersRan())
  return lastTurn
}

/** Of all readers, one waits in the queue of turns. */
function nextReadersTurn(): Promise<void> {
  lastReadersTurn = lastReadersTurn.then(nextTurn)
  return lastReadersTurn
}
