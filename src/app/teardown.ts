import { toError } from '../lib/errors.ts'
import type { Logger } from '../telemetry/log.ts'

interface Releaser {
  readonly name: string
  readonly release: () => Promise<void> | void
}

/**
 * What was started, to be stopped in the opposite order. One deadline holds for each step: a part that hangs is named and
 * left behind, so that stopping always ends. Idempotent; a failed start rolls back through it.
 */
export class Teardown {
  readonly #releasers: Releaser[] = []
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  push(name: string, release: () => Promise<void> | void): void {
    this.#releasers.push({ name, release })
  }

  async run(stepTimeoutMs: number): Promise<void> {
    for (let each = this.#releasers.pop(); each; each = this.#releasers.pop()) {
      const { name, release } = each
      try {
        await withTimeout(release(), stepTimeoutMs)
      } catch (thrown) {
        this.#log.error({ part: name, err: toError(thrown) }, 'stop.failed')
      }
    }
  }
}

async function withTimeout(work: Promise<void> | void, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`did not stop within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
