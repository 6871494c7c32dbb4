import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { AdminDeps } from '../ports.ts'
import { sendProblem } from '../problem.ts'

/**
 * A web page can point its own name at this server (DNS rebinding); for the browser both are then one origin, and the
 * page may read every answer. It cannot change the name in `Host`, so only requests with a name of ours are answered.
 *
 * Any IP address is answered as well: a page whose address is an IP address needs no DNS, so there is nothing to rebind.
 * Probes and scrapes of Kubernetes send one. A request without `Host` is a health check of HTTP/1.0, never from a page.
 */
export function refuseForeignHosts(app: FastifyInstance, { hosts }: Pick<AdminDeps, 'hosts'>): void {
  app.addHook('onRequest', async (request, reply) => {
    const { host } = request.headers
    // Of two, Node.js shows us the first; a proxy before us may have checked the other.
    if (request.raw.rawHeaders.filter((text, at) => at % 2 === 0 && /^host$/i.test(text)).length > 1)
      return sendProblem(reply, { status: 400, detail: 'A request names one Host.' })
    if (host === undefined && request.raw.httpVersion !== '1.0')
      return sendProblem(reply, { status: 400, detail: 'A request of HTTP/1.1 names its Host.' })
    if (host === undefined || isOurs(host, hosts()) || lifePaths.has(request.routeOptions.url ?? '')) return
    return sendProblem(reply, {
      status: 421,
      detail: `The bridge does not know itself as ${printable(host)}: add the name to http.hosts in its config.`,
    })
  })
}

/** Always answered: they return one word, or which polling loop hangs, and a refusal would restart the process. */
export const lifePaths: ReadonlySet<string> = new Set(['/healthz', '/-/healthy'])

/** Whether a `Host` is this machine, an IP address, or one of `names`, with any port. */
function isOurs(host: string, names: readonly string[]): boolean {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(host)
  if (match === null) return false
  const [, v6, name = ''] = match
  if (v6 !== undefined) return isIP(v6) === 6
  const plain = plainName(name)
  return isIP(plain) === 4 || plain === 'localhost' || plain.endsWith('.localhost') || isAmong(name, names)
}

/** Whether a name is one of `names`, in whatever letters. */
export function isAmong(name: string, names: readonly string[]): boolean {
  return names.some((known) => plainName(known) === plainName(name))
}

function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

const shownCharsMax = 100

/** A header may contain anything. */
export function printable(host: string): string {
  return JSON.stringify(host.slice(0, shownCharsMax).replace(/[^\x20-\x7e]/g, '?'))
}
