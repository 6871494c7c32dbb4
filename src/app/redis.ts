import type { RedisConfig } from '../config/redis.ts'
import { UserError } from '../lib/errors.ts'
import { given } from '../lib/given.ts'
import { tlsOptions } from '../sinks/transport/tls.ts'
import { startEmbeddedRedis } from '../store/connection/embedded.ts'
import {
  closeRedis,
  connectRedis,
  keepTogether,
  type RedisClient,
  type RedisPair,
  type RedisTarget,
  waitForRedis,
} from '../store/connection/redis.ts'
import { checkRedis, type RedisFinding } from '../store/connection/redis-check.ts'
import { claimFormat } from '../store/connection/state-format.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Teardown } from './teardown.ts'

/**
 * Starts the embedded server when the config asks for it; then connects, without waiting for an answer. The signal ends
 * the start of the server.
 */
export async function openRedis(
  config: RedisConfig,
  dataDir: string,
  tools: { log: Logger; teardown: Teardown; signal: AbortSignal },
): Promise<RedisPair> {
  const target = await targetOf(config, dataDir, tools)
  const opened: RedisClient[] = []
  // Both at once: a server that hangs is waited for by each.
  tools.teardown.push('redis', async () => void (await Promise.all(opened.map(closeRedis))))
  const connect = (profile: 'commands' | 'blocking') => {
    const client = connectRedis({ target, profile, connectionName: `alert-bridge-${profile}` }, tools.log)
    opened.push(client)
    return client
  }
  const pair = { commands: connect('commands'), blocking: connect('blocking') }
  keepTogether(pair)
  return pair
}

/** The address and login of a Redis that the bridge does not start itself. */
export function redisTargetOf(config: Exclude<RedisConfig, { mode: 'embedded' }>): RedisTarget {
  const { username, password, tls } = config
  const login = { ...given({ username, password }), ...(tls === undefined ? {} : { tls: tlsOptions(tls) }) }
  switch (config.mode) {
    case 'single':
      return { url: config.url, ...login }
    case 'cluster':
      return { cluster: config.nodes, ...login }
    case 'sentinel': {
      const { sentinels, name, sentinelUsername, sentinelPassword } = config
      return { ...login, sentinels, name, ...given({ sentinelUsername, sentinelPassword }) }
    }
    default:
      return config satisfies never
  }
}

/** Waits until Redis answers and takes writes. If it would lose alerts, throws a UserError with the setting to change. */
export async function admitRedis(
  redis: RedisClient,
  options: { prefix: string; log: Logger; signal: AbortSignal },
): Promise<void> {
  const { prefix, log, signal } = options
  let findings: readonly RedisFinding[] = []
  const ask = async () => {
    findings = await checkRedis(redis, { prefix })
    if (findings.every(({ level }) => level !== 'refuse'))
      findings = [...findings, ...(await claimFormat(redis, prefix))]
  }
  await waitForRedis(redis, { log, signal, ask })
  for (const { level, code, message } of findings) if (level === 'warn') log.warn({ code }, message)
  const refusals = findings.filter(({ level }) => level === 'refuse')
  if (refusals.length > 0) throw new UserError(refusals.map(({ message }) => message).join('\n'))
}

async function targetOf(
  config: RedisConfig,
  dataDir: string,
  { log, teardown, signal }: { log: Logger; teardown: Teardown; signal: AbortSignal },
): Promise<RedisTarget> {
  if (config.mode !== 'embedded') return redisTargetOf(config)
  const embedded = await startEmbeddedRedis({ dataDir, log, signal, asksToLeave: true })
  teardown.push('embedded redis', () => embedded.stop())
  return { url: embedded.url }
}
