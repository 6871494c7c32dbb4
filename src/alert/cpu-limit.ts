/**
 * How much checking may cost where that depends on what is written: one limit for all that is checked together. Counted is
 * the processor's time, not the clock's, so that a busy machine refuses nothing that an idle one takes. What is checked
 * does not wait for anything, so there is one such effort at a time.
 */
export function withinCpuLimit<T>(cpuMsMax: number, check: () => T): T {
  const outer = current
  current = { since: process.cpuUsage(), cpuMsMax, found: new Map() }
  try {
    return check()
  } finally {
    current = outer
  }
}

/** Never where nobody set a limit. */
export function isCpuLimitSpent(): boolean {
  if (current === undefined) return false
  const { user, system } = process.cpuUsage(current.since)
  return (user + system) / 1_000 > current.cpuMsMax
}

/** What `find` returned for this key within this effort: what stands in many places is checked once. */
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
