/**
 * Limits the time of checks whose cost depends on the text that is checked: one limit for all that is checked together.
 * It counts processor time of this thread, so that neither a busy machine nor one of many cores, on which more threads collect
 * garbage, refuses what another accepts. Checks are synchronous, so there is only one at a time. `found` is what `oncePerCheck` found, for a check that is made in parts.
 */
export function withinCpuLimit<T>(cpuMsMax: number, check: () => T, found = new Map<string, unknown>()): T {
  const outer = current
  current = { since: process.threadCpuUsage(), cpuMsMax, found }
  try {
    return check()
  } finally {
    current = outer
  }
}

/** Always false outside `withinCpuLimit`. */
export function isCpuLimitSpent(): boolean {
  if (current === undefined) return false
  const { user, system } = process.threadCpuUsage(current.since)
  return (user + system) / 1_000 > current.cpuMsMax
}

/** What `find` returned for this key within this check: a text that is repeated is checked once. */
export function oncePerCheck<T>(key: string, find: () => T): T {
  if (current?.found.has(key)) return current.found.get(key) as T
  const found = find()
  current?.found.set(key, found)
  return found
}

interface Check {
  readonly since: NodeJS.CpuUsage
  readonly cpuMsMax: number
  readonly found: Map<string, unknown>
}

let current: Check | undefined
