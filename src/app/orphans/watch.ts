import { describeOrphan, type OrphanView } from '../../admin/views/orphan-view.ts'
import type { Clock } from '../../lib/clock.ts'
import { toError } from '../../lib/errors.ts'
import type { Logger } from '../../telemetry/log.ts'

/**
 * Checks regularly what is left of names that are not in the config. Logs it, once per name and process, and has a notice
 * sent to the operators.
 */
interface OrphanWatch {
  /** The result of the last check. */
  found(): readonly OrphanView[]
  /** Checks at once, because another config is in force. */
  lookAgain(): void
  run(signal: AbortSignal): Promise<void>
}

interface OrphanWatchOptions {
  /** Tidies up, and lists what is left. */
  look(): Promise<readonly OrphanView[]>
  /** The names in the config. They are no orphans, even if a notice said so before. */
  named(): readonly OrphanName[]
  onFound(orphan: OrphanView): void
  onNone(name: OrphanName): void
  readonly clock: Clock
  readonly log: Logger
}

type OrphanName = Pick<OrphanView, 'kind' | 'name'>

export function createOrphanWatch(options: OrphanWatchOptions): OrphanWatch {
  const { named, onFound, onNone, clock, log } = options
  let found: readonly OrphanView[] = []
  let isNew = true
  let wake = new AbortController()
  const look = async () => {
    const before = found
    found = await options.look()
    if (isNew) for (const name of named()) onNone(name)
    isNew = false
    for (const orphan of found.filter((each) => !before.some((other) => isSame(each, other)))) {
      log.warn(orphan, describeOrphan(orphan))
      onFound(orphan)
    }
    for (const { kind, name } of before.filter((each) => !found.some((other) => isSame(each, other)))) {
      log.info({ kind, name }, 'nothing is left behind under this name any more')
      onNone({ kind, name })
    }
  }
  return {
    found: () => found,
    lookAgain() {
      isNew = true
      wake.abort(new Error('another config is in force'))
    },
    async run(signal) {
      while (!signal.aborted) {
        wake = new AbortController()
        await look().catch((thrown: unknown) => log.debug({ err: toError(thrown) }, 'orphans not looked at'))
        await clock.sleep(lookEveryMs, AbortSignal.any([signal, wake.signal])).catch(() => {})
      }
    },
  }
}

const lookEveryMs = 5_000

function isSame(a: OrphanName, b: OrphanName): boolean {
  return a.kind === b.kind && a.name === b.name
}
