import type { PauseOrder } from '../admin/ports.ts'
import type { Sender } from '../delivery/sender.ts'
import type { Clock } from '../lib/clock.ts'
import { toError } from '../lib/errors.ts'
import type { PauseStore } from '../store/pauses.ts'
import type { Logger } from '../telemetry/log.ts'

/** Pauses sinks, for a time or until somebody resumes them; every replica resumes those whose time is over. */
export interface Pauses {
  /** False when there is no such sink. */
  pause(sink: string, order: PauseOrder): Promise<boolean>
  resume(sink: string): Promise<boolean>
  list: PauseStore['list']
  run(signal: AbortSignal): Promise<void>
}

interface PausesOptions {
  readonly sender: Pick<Sender, 'pause' | 'resume'> & { states(): readonly { readonly sink: string }[] }
  readonly store: PauseStore
  readonly clock: Clock
  readonly log: Logger
  readonly lookEveryMs?: number | undefined
}

export function createPauses({ sender, store, clock, log, lookEveryMs = 5_000 }: PausesOptions): Pauses {
  /**
   * Ends a pause whose end is not stored. The queue and the store are changed one after the other, and another order may have
   * changed both in between: each order looks last, so whichever of the two is last leaves no pause that nobody ends.
   */
  const endUnlessStored = async (sink: string) => {
    if (!(await store.list()).has(sink)) await sender.resume(sink)
  }
  const look = async () => {
    for (const [sink, pause] of await store.list()) {
      if (pause.untilMs === null || pause.untilMs > clock.now()) continue
      // First resumed, then forgotten: a process that ends in between leaves no pause without an end. A sink that is not in
      // this config is left to a process that has it, or to the time when its name comes back.
      if (!(await sender.resume(sink))) continue
      // An operator may have paused it anew since the list was read.
      if (await store.end(sink, pause))
        log.info({ sink, comment: pause.comment }, 'the pause of a sink is over')
      else {
        await sender.pause(sink)
        await endUnlessStored(sink)
      }
    }
  }
  return {
    async pause(sink, { untilMs, comment }) {
      if (!sender.states().some((state) => state.sink === sink)) return false
      // First its end, then the pause: where only one of the two is stored, the sink is not paused.
      await store.set(sink, { untilMs: untilMs ?? null, comment })
      if (!(await sender.pause(sink))) return false
      await endUnlessStored(sink)
      return true
    },
    async resume(sink) {
      if (!(await sender.resume(sink))) return false
      await store.end(sink)
      await endUnlessStored(sink)
      return true
    },
    list: () => store.list(),
    async run(signal) {
      while (!signal.aborted) {
        await look().catch((thrown: unknown) => log.debug({ err: toError(thrown) }, 'pauses not looked at'))
        await clock.sleep(lookEveryMs, signal).catch(() => {})
      }
    },
  }
}
