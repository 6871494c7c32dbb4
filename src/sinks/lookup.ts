import { promises as dns, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { toError } from '../lib/errors.ts'

/**
 * How sinks look up names. The system does it on the few threads of the process (four), and a name server that says nothing
 * keeps a thread for many seconds, long after the attempt is over. So all who ask for one name wait for one lookup, and
 * one thread is never taken: a receiver whose name cannot be found holds up neither other sinks nor the feed.
 */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>

export function sharingLookups(resolve: Resolve, atOnceMax: number): Resolve {
  const asked = new Map<string, Promise<LookupAddress[]>>()
  const waiting: (() => void)[] = []
  let running = 0

  async function inTurn(hostname: string): Promise<LookupAddress[]> {
    if (running >= atOnceMax) await new Promise<void>((start) => waiting.push(start))
    else running += 1
    try {
      return await resolve(hostname)
    } finally {
      const next = waiting.shift()
      if (next === undefined) running -= 1
      else next()
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

const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4

export const systemResolve = sharingLookups(
  (hostname) => dns.lookup(hostname, { all: true }),
  Math.max(1, threads - 1),
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
