import type { FastifyInstance } from 'fastify'
import { lifePaths } from './guard/host.ts'
import type { AdminDeps, MetricsFormat } from './ports.ts'
import { verdictLine } from './verdict.ts'

/**
 * Addresses for machines: metrics, alive, ready. The last two have two names: one is usual in Kubernetes, the other with
 * Prometheus. "Alive" does not ask Redis, so that an outage of Redis restarts no process; it fails only when a polling
 * loop hangs for ever, because then a restart helps.
 */
export function registerHealth(app: FastifyInstance, { ports }: AdminDeps): void {
  for (const path of lifePaths)
    app.get(path, { config: { about: lifeAbout } }, async (_request, reply) => {
      const hung = ports.hung()
      reply.code(hung === undefined ? 200 : 503).type(plainText)
      return hung === undefined ? 'healthy\n' : `not alive: ${hung}\n`
    })

  for (const path of ['/readyz', '/-/ready'])
    app.get(path, { config: { about: readyAbout } }, async (request, reply) => {
      const { ready, verdict } = await ports.status()
      const { level, headline } = verdict
      reply.code(ready.ok ? 200 : 503)
      const because = ready.reason === undefined ? {} : { reason: ready.reason }
      if (wants('application/json', request.headers.accept))
        return { ready: ready.ok, ...because, level, headline }
      const after = ready.reason === undefined ? '' : `: ${ready.reason}`
      return reply.type(plainText).send(`${verdictLine(verdict)}${after}\n`)
    })

  app.get('/metrics', { config: { about: metricsAbout } }, async ({ headers: { accept } }, reply) => {
    const format = wants('application/openmetrics-text', accept) ? 'openmetrics' : 'prometheus'
    return reply.type(contentTypes[format]).send(await ports.metricsText(format))
  })
}

const lifeAbout = { says: 'Whether the process lives; 503 where only a new one helps', answer: 'text/plain' }
const readyAbout = {
  says: 'Whether this process can do its work; 503 with the reason where not',
  answer: 'text/plain',
}
const metricsAbout = { says: 'What Prometheus scrapes', answer: 'text/plain' }

const plainText = 'text/plain; charset=utf-8'
const contentTypes: Readonly<Record<MetricsFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/** Named, and not with `q=0`, by which a client says that it does not take it. */
function wants(type: string, accept = ''): boolean {
  return accept.split(',').some((each) => each.includes(type) && !/;\s*q=0(\.0*)?\s*$/.test(each))
}
