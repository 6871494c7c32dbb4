import { toError } from '../lib/errors.ts'
import type { Logger } from '../telemetry/log.ts'

interface Releaser {
  readonly name: string
  readonly release: () => Promise<void> | void
  /** Called when the part is stopped; without it, the limit is that of every step. */
  readonly timeoutMs: (() => number) | undefined
}

/**
 * Stops what was started, in the opposite order. Each step has a limit of time: a part that hangs is logged and not
 * waited for any longer, so stopping always ends. Idempotent. A start that fails is undone by it too.
 */
export class Teardown {
  readonly #releasers: Releaser[] = []
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  push(name: string, release: () => Promise<void> | void, timeoutMs?: () => number): void {
    this.#releasers.push({ name, release, timeoutMs })
  }

  async run(stepTimeoutMs: number): Promise<void> {
    for (let each = this.#releasers.pop(); each; each = this.#releasers.pop()) {
      const { name, release, timeoutMs } = each
      try {
        await withTimeout(release, timeoutMs?.() ?? stepTimeoutMs)
      } catch (thrown) {
        this.#log.error({ part: name, err: toError(thrown) }, 'stop.failed')
      }
    }
  }
}

async function withTimeout(release: Releaser['release'], timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`did not stop within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    await Promise.race([release(), late])
  } finally {
    clearTimeout(timer)
  }
}
