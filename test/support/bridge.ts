import type { Cluster, Redis } from 'ioredis'
import { queuePrefix } from '../../src/store/keys.ts'
import { freshPrefix, type RedisServer } from './redis.ts'

/** The config of most fault tests: one source that polls fast, webhook sinks that lose no time between attempts. */
interface BridgeConfig {
  readonly redis: Pick<RedisServer, 'url'> | { readonly cluster: readonly string[] }
  readonly feed: string
  readonly sinks: Readonly<Record<string, string>>
  readonly prefix?: string
  readonly startFrom?: string
  readonly every?: string
  readonly token?: string
  /** More of the common settings of every sink, as YAML in braces would have it. */
  readonly sink?: string
  /** As YAML in brackets; without it every sink gets every alert. */
  readonly routes?: string
}

/** Pauses of 100 to 500 ms, so that a test does not wait for a schedule that is tested elsewhere. */
export const impatient =
  'allowPrivateNetworks: true, timeout: 3s, retry: { attempts: 100, initialDelay: 100ms, maxDelay: 500ms }'

export function bridgeConfig(parts: BridgeConfig): string {
  const { every = '250ms', startFrom = 'beginning', token = 'token: sandbox-token' } = parts
  const sinks = Object.entries(parts.sinks).map(
    ([name, url]) => `  ${name}: { type: webhook, url: "${url}", ${parts.sink ?? impatient} }`,
  )
  return `
redis: { ${place(parts.redis)}, prefix: ${parts.prefix ?? freshPrefix()} }
http: { listen: "127.0.0.1:0", adminToken: ${adminToken} }
sources: { main: { baseUrl: "${parts.feed}", ${token}, startFrom: ${startFrom}, poll: { every: ${every}, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 1000000, requestsPerMinute: 240 } } }
sinks:
${sinks.join('\n')}
routes: ${parts.routes ?? `[{ sinks: [${Object.keys(parts.sinks).join(', ')}] }]`}
`
}

function place(redis: BridgeConfig['redis']): string {
  return 'url' in redis ? `url: "${redis.url}"` : `cluster: ${JSON.stringify(redis.cluster)}`
}

export const adminToken = 'canary-of-the-admin-token'

/** A JSON answer of the API. */
export async function api<T>(url: string, path: string): Promise<T> {
  const response = await fetch(`${url}${path}`)
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

/** The value of one series on the metrics page; NaN when it is not there. */
export async function metric(url: string, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const line = text.split('\n').find((each) => each.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1))
}

/** `ok`, or the reason why the bridge is not ready. */
export async function readiness(url: string): Promise<string> {
  const response = await fetch(`${url}/readyz`)
  return response.status === 200 ? 'ok' : response.text()
}

/** Jobs that are neither delivered nor given up. */
export async function leftToSend(
  client: Redis | Cluster,
  prefix: string,
  sinks: readonly string[],
): Promise<number> {
  const counts = await Promise.all(
    sinks.flatMap((sink) => {
      const queue = `${queuePrefix(prefix)}:${sink}`
      return [client.llen(`${queue}:wait`), client.llen(`${queue}:active`), client.zcard(`${queue}:delayed`)]
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}
