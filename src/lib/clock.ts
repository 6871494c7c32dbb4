/** The clock of all other code, so that a test can set it. */
export interface Clock {
  /** The wall clock: milliseconds since the epoch. People and NTP set it, so it is for dates and never for durations. */
  now(): number
  /**
   * Milliseconds since some moment in the past, never set back: for waits, deadlines, durations and rates of this
   * process.
   */
  monotonicMs(): number
  /** Resolves after `ms`, or rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The longest delay that setTimeout takes; longer sleeps are made of several. */
const timerMsMax = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  async sleep(ms, signal) {
    let left = ms
    do {
      await sleepOnce(Math.min(Math.max(0, left), timerMsMax), signal)
      left -= timerMsMax
    } while (left > 0)
  },
}

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
