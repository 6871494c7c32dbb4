import { promises as dns, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { toError } from '../../lib/errors.ts'

/**
 * Limits name lookups of sinks. Node.js does lookups on a few threads of the process, and a name server that does not
 * answer blocks a thread for many seconds, long after the attempt is over. So callers that need the same name share one
 * lookup, names whose last lookup was slow share one thread, and one thread is always left free: names that cannot be
 * resolved delay neither other sinks nor the feed, except the first lookups of seven at once.
 */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>

export function sharingLookups(
  resolve: Resolve,
  atOnceMax: number,
  clock: Pick<Clock, 'monotonicMs'> = systemClock,
): Resolve {
  const asked = new Map<string, Promise<LookupAddress[]>>()
  /** Names whose last lookup took long, whether it found an address or not. */
  const slow = new Set<string>()
  const waiting: { readonly isSlow: boolean; readonly start: () => void }[] = []
  let running = 0
  let slowRunning = 0

  const mayStart = (isSlow: boolean) => running < atOnceMax && !(isSlow && slowRunning > 0)
  const count = (isSlow: boolean, by: 1 | -1) => {
    running += by
    if (isSlow) slowRunning += by
  }

  function startNext(): void {
    const index = waiting.findIndex(({ isSlow }) => mayStart(isSlow))
    const [next] = index === -1 ? [] : waiting.splice(index, 1)
    if (next === undefined) return
    count(next.isSlow, 1)
    next.start()
  }

  async function inTurn(hostname: string): Promise<LookupAddress[]> {
    const isSlow = slow.has(hostname)
    if (mayStart(isSlow)) count(isSlow, 1)
    else await new Promise<void>((start) => waiting.push({ isSlow, start }))
    const fromMs = clock.monotonicMs()
    try {
      return await resolve(hostname)
    } finally {
      if (clock.monotonicMs() - fromMs >= slowMs) slow.add(hostname)
      else slow.delete(hostname)
      count(isSlow, -1)
      startNext()
    }
  }

  return (hostname) => {
    const known = asked.get(hostname)
    if (known !== undefined) return known
    const begun = inTurn(hostname).finally(() => asked.delete(hostname))
    asked.set(hostname, begun)
    return begun
  }
}

/** A second try, after a name server that did not answer, begins after five seconds. */
const slowMs = 1_000

/** As `main.ts` sets it, and 4 without. Node.js gives lookups half of its threads, since they may take long. */
const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4
const threadsOfLookups = Math.floor((threads + 1) / 2)

export const systemResolve = sharingLookups(
  (hostname) => dns.lookup(hostname, { all: true }),
  Math.max(1, threadsOfLookups - 1),
)

/** As `net.connect` wants it. */
export function lookupWith(resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const first = addresses[0]
        if (options.all || first === undefined) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error: unknown) => callback(toError(error), []),
    )
  }
}
