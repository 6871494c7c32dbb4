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
    const timer = setTimeout(
      () => reject(new TimeLimitError(`${what} took longer than ${limitMs} ms`)),
      Math.max(0, limitMs),
    )
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    })
  })
}

/** Resolves to whether `work` settled, either way, within `limitMs`. */
export async function settlesWithin(limitMs: number, work: Promise<unknown>): Promise<boolean> {
  try {
    await within(limitMs, 'this', work)
    return true
  } catch (error) {
    return !(error instanceof TimeLimitError)
  }
}
