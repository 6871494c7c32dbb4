import { readFileSync } from 'node:fs'

type Pid = number | 'self'

/** By process, how long its main thread has waited for a processor that others had; of those that have ended, what it was then. */
const waitedMs = new Map<Pid, number>([['self', 0]])
const ended = new Set<Pid>()

/** For programs that a test starts: its limits count no time in which these wait for a processor. */
export function countWaits(pid: number | undefined): void {
  if (pid === undefined) return
  ended.delete(pid)
  waitedMs.set(pid, 0)
}

/**
 * A clock of milliseconds, from now on, without the time for which the main thread of this process, or of a program that the
 * test has started, waited for a processor; where several waited, it is the longest of these times. So what it measures is about
 * what the same takes on a machine with nothing else to do. On a system without /proc it is the usual clock.
 */
export function ownTime(): () => number {
  look()
  const before = new Map(waitedMs)
  return () => {
    look()
    const waits = [...waitedMs].map(([pid, ms]) => ms - (before.get(pid) ?? 0))
    return performance.now() - Math.max(...waits)
  }
}

/** Calls `act` once the limit is over by such a clock. */
export function afterOwnMs(limitMs: number, act: () => void): { off(): void } {
  const nowMs = ownTime()
  const endMs = nowMs() + limitMs
  const see = () => {
    const leftMs = endMs - nowMs()
    if (leftMs <= 0) act()
    else timer = setTimeout(see, leftMs)
  }
  let timer = setTimeout(see, limitMs)
  return { off: () => clearTimeout(timer) }
}

function look(): void {
  for (const pid of waitedMs.keys()) {
    if (ended.has(pid)) continue
    const ms = readWaitedMs(pid)
    if (ms === undefined) ended.add(pid)
    else waitedMs.set(pid, ms)
  }
}

/** The kernel's sched-stats: nanoseconds on a processor, nanoseconds of waiting for one, turns. */
function readWaitedMs(pid: Pid): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
  } catch {
    return undefined
  }
}
