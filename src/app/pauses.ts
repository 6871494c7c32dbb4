import type { PauseOrder } from '../admin/ports.ts'
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
  /** Whether the config in force has this sink. */
  readonly hasSink: (sink: string) => boolean
  readonly store: PauseStore
  readonly clock: Clock
  readonly log: Logger
  readonly lookEveryMs?: number | undefined
}

export function createPauses({ hasSink, store, clock, log, lookEveryMs = 5_000 }: PausesOptions): Pauses {
  const look = async () => {
    for (const [sink, pause] of await store.list()) {
      if (pause.untilMs === null || pause.untilMs > clock.now()) continue
      // A sink that is not in this config is left to a process that has it, or to the time when its name comes back. One that an
      // operator has paused anew since the list was read stays paused.
      if (hasSink(sink) && (await store.resume(sink, pause)))
        log.info({ sink, comment: pause.comment }, 'the pause of a sink is over')
    }
  }
  return {
    async pause(sink, { untilMs, comment }) {
      if (!hasSink(sink)) return false
      await store.pause(sink, { untilMs: untilMs ?? null, comment })
      return true
    },
    async resume(sink) {
      return hasSink(sink) && store.resume(sink)
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
