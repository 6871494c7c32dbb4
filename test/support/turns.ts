import { setImmediate as untilOthersRan } from 'node:timers/promises'

/**
 * Runs `work` and measures the longest that others had to wait for their turn meanwhile, in milliseconds of this thread's
 * processor time, so that neither a busy machine nor what other threads of this process do changes anything.
 */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let [longestMs, last] = [0, process.threadCpuUsage()]
  const look = () => {
    const { user, system } = process.threadCpuUsage(last)
    longestMs = Math.max(longestMs, (user + system) / 1_000)
    last = process.threadCpuUsage()
    next = setImmediate(look)
  }
  let next = setImmediate(look)
  try {
    await work()
    await untilOthersRan()
  } finally {
    clearImmediate(next)
  }
  return longestMs
}
