import type { Source } from './source.ts'

/**
 * The polling loops, one per source. When the config of a source changes, its new loop starts only after the old one has
 * finished its page and given back its lease.
 */
export interface Pollers {
  /** Polls these sources from now on. Resolves when the loops of all others have ended. */
  swap(sources: ReadonlyMap<string, Source>): Promise<void>
  /** No new poll; resolves when the last page is finished. */
  stop(): Promise<void>
}

interface RunningPoller {
  readonly source: Source
  readonly controller: AbortController
  /** Never rejects. */
  readonly ended: Promise<void>
}

/** `polls` is false for a process that only sends: it has its sources only to report their status. */
export function createPollers({ polls }: { readonly polls: boolean }): Pollers {
  const running = new Map<string, RunningPoller>()
  /** By name: the loop that must end before another one starts. */
  const ending = new Map<string, Promise<void>>()

  const run = (name: string, source: Source): RunningPoller => {
    const controller = new AbortController()
    const { signal } = controller
    const ended = (async () => {
      await ending.get(name)
      if (!polls) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      else if (!signal.aborted) await source.poller.run(signal)
      await source.close()
    })().catch(() => {})
    return { source, controller, ended }
  }
  const end = (name: string, { controller, ended }: RunningPoller): Promise<void> => {
    running.delete(name)
    controller.abort(new Error('stopping'))
    const over = ended.finally(() => {
      if (ending.get(name) === over) ending.delete(name)
    })
    ending.set(name, over)
    return over
  }

  return {
    async swap(sources) {
      const gone = [...running].filter(([name, { source }]) => sources.get(name) !== source)
      const ended = gone.map(([name, each]) => end(name, each))
      for (const [name, source] of sources) if (!running.has(name)) running.set(name, run(name, source))
      await Promise.all(ended)
    },
    async stop() {
      for (const [name, each] of [...running]) end(name, each)
      await Promise.all(ending.values())
    },
  }
}
