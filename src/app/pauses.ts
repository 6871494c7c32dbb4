import type { PauseOrder } from '../admin/ports.ts'
import type { Clock } from '../lib/clock.ts'
import { toError, UserError } from '../lib/errors.ts'
import { type PauseStore, pauseId } from '../store/operators/pauses.ts'
import type { Logger } from '../telemetry/log.ts'

/** Pauses sinks, for a time or until somebody resumes them; every replica resumes those whose time is over. */
export interface Pauses {
  /** Returns the id of the pause, undefined when there is no such sink. Throws a UserError where it is paused and must not be. */
  pause(sink: string, order: PauseOrder): Promise<string | undefined>
  /** False when there is no such sink. With the id of a pause only if no other one is in its place: then it throws a UserError. */
  resume(sink: string, id?: string): Promise<boolean>
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
    async pause(sink, { untilMs, comment, unlessPaused }) {
      if (!hasSink(sink)) return undefined
      const pause =
        untilMs === undefined ? { untilMs: null, comment, sinceMs: clock.now() } : { untilMs, comment }
      if (await store.pause(sink, pause, unlessPaused)) return pauseId(pause)
      throw new UserError(`Sink ${sink} is paused already: that pause stays.`)
    },
    async resume(sink, id) {
      if (!hasSink(sink)) return false
      if (id === undefined) return store.resume(sink)
      const pause = (await store.list()).get(sink)
      if (pause === undefined) return true
      if (pauseId(pause) === id && (await store.resume(sink, pause))) return true
      throw new UserError(`Sink ${sink} was paused anew since: that pause stays.`)
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
