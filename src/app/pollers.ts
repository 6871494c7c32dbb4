import type { Source } from './source.ts'

/**
 * The polling loops, one a source. A source whose config changes is polled by one loop at a time: the new one begins
 * when the old one has finished its page and given its lease back.
 */
export interface Pollers {
  /** From now on these. Resolves when the loops of those that went have ended. */
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

/** `polls` is false for a process that only sends: there the sources are there to be looked at. */
export function createPollers({ polls }: { readonly polls: boolean }): Pollers {
  const running = new Map<string, RunningPoller>()
  /** Of each name, the loop that is to end before another one begins. */
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
