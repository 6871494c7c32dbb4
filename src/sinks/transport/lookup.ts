import { promises as dns, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { toError } from '../../lib/errors.ts'

/**
 * Limits name lookups of sinks. Node.js does lookups on a few threads of the process, and a name server that does not
 * answer blocks a thread for many seconds, long after the attempt is over. So callers that need the same name share one
 * lookup, names whose last lookup failed after a long time share one thread, and one thread is always left free: names
 * that cannot be resolved delay neither other sinks nor the feed, except the first lookups of seven at once. A name that
 * is found after a long time counts like any other: where the first of two name servers is dead, that is every name.
 */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>

export function sharingLookups(
  resolve: Resolve,
  atOnceMax: number,
  clock: Pick<Clock, 'monotonicMs'> = systemClock,
): Resolve {
  const asked = new Map<string, Promise<LookupAddress[]>>()
  /** Names whose last lookup took long and found no address. */
  const hung = new Set<string>()
  const waiting: { readonly isHung: boolean; readonly start: () => void }[] = []
  let running = 0
  let hungRunning = 0

  const mayStart = (isHung: boolean) => running < atOnceMax && !(isHung && hungRunning > 0)
  const count = (isHung: boolean, by: 1 | -1) => {
    running += by
    if (isHung) hungRunning += by
  }

  function startNext(): void {
    const index = waiting.findIndex(({ isHung }) => mayStart(isHung))
    const [next] = index === -1 ? [] : waiting.splice(index, 1)
    if (next === undefined) return
    count(next.isHung, 1)
    next.start()
  }

  async function inTurn(hostname: string): Promise<LookupAddress[]> {
    const isHung = hung.has(hostname)
    if (mayStart(isHung)) count(isHung, 1)
    else await new Promise<void>((start) => waiting.push({ isHung, start }))
    const fromMs = clock.monotonicMs()
    hung.delete(hostname)
    try {
      return await resolve(hostname)
    } catch (error) {
      if (clock.monotonicMs() - fromMs >= slowMs) hung.add(hostname)
      throw error
    } finally {
      count(isHung, -1)
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
