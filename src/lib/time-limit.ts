/** Whatever waits for Redis or a remote waits within a limit. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError'
  readonly code = 'ERR_TIME_LIMIT'
}

/**
 * Settles as `work` does, or rejects with a TimeLimitError after `limitMs`, or as the signal aborts; what `work` does later
 * is ignored.
 */
export function within<T>(limitMs: number, what: string, work: Promise<T>, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    const call = onTimeUp(limitMs, () => reject(new TimeLimitError(`${what} took longer than ${limitMs} ms`)))
    const off = () => {
      call.off()
      signal?.removeEventListener('abort', onAbort)
    }
    work.then(off, off)
    work.then(resolve, reject)
  })
}

/**
 * Calls `act` after `limitMs`. Where this process was frozen or busy when the time was up, it has not read what arrived
 * meanwhile: then `act` is called a little later, so that an answer which came in time counts.
 */
export function onTimeUp(limitMs: number, act: () => void): { off(): void } {
  const dueMs = performance.now() + limitMs
  const look = () => {
    if (performance.now() - dueMs < stoodStillMs) act()
    else timer = setTimeout(act, readMs)
  }
  let timer = setTimeout(look, Math.max(0, limitMs))
  return { off: () => clearTimeout(timer) }
}

/** A timer of an ordinary process is less late. */
const stoodStillMs = 200
/** More than it takes to read what waits in the sockets, also for many sends at once. */
const readMs = 500

/** Resolves to whether `work` settled, either way, within `limitMs`. */
export async function settlesWithin(limitMs: number, work: Promise<unknown>): Promise<boolean> {
  try {
    await within(limitMs, 'this', work)
    return true
  } catch (error) {
    return !(error instanceof TimeLimitError)
  }
}
