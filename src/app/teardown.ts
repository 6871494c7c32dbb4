import { toError } from '../lib/errors.ts'
import type { Logger } from '../telemetry/log.ts'

interface Releaser {
  readonly name: string
  readonly release: () => Promise<void> | void
  /** Asked when it is released; without it, the limit of every step. */
  readonly timeoutMs: (() => number) | undefined
}

/**
 * What was started, to be stopped in the opposite order. Each step has a deadline: a part that hangs is named and
 * left behind, so that stopping always ends. Idempotent; a failed start rolls back through it.
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
