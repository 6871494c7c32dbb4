import type { RedisConfig } from '../config/redis.ts'
import { UserError } from '../lib/errors.ts'
import { startEmbeddedRedis } from '../store/embedded.ts'
import { closeRedis, connectRedis, type RedisClient, type RedisTarget, waitForRedis } from '../store/redis.ts'
import { checkRedis, type RedisFinding } from '../store/redis-check.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Teardown } from './teardown.ts'

/** The two connections of one process: `commands` fails fast, `blocking` is what the workers wait on. */
export interface RedisPair {
  readonly commands: RedisClient
  readonly blocking: RedisClient
}

/**
 * Starts the embedded server when the config asks for it; connects, without waiting for an answer. The signal ends the
 * start.
 */
export async function openRedis(
  config: RedisConfig,
  dataDir: string,
  tools: { log: Logger; teardown: Teardown; signal: AbortSignal },
): Promise<RedisPair> {
  const target = await targetOf(config, dataDir, tools)
  const connect = (profile: 'commands' | 'blocking') => {
    const client = connectRedis({ target, profile, connectionName: `alert-bridge-${profile}` }, tools.log)
    tools.teardown.push(`redis ${profile}`, () => closeRedis(client))
    return client
  }
  return { commands: connect('commands'), blocking: connect('blocking') }
}

/** Where a Redis that is not ours to start is. */
export function redisTargetOf(config: Exclude<RedisConfig, { mode: 'embedded' }>): RedisTarget {
  const { username, password } = config
  const login = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  }
  switch (config.mode) {
    case 'single':
      return { url: config.url, ...login }
    case 'cluster':
      return { cluster: config.nodes, ...login }
    case 'sentinel': {
      const { sentinels, name, sentinelUsername, sentinelPassword } = config
      return {
        ...login,
        sentinels: sentinels.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`),
        name,
        ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
        ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
      }
    }
    default:
      return config satisfies never
  }
}

/** Waits until Redis answers and takes writes, then refuses one that would lose alerts, with the setting to change. */
export async function admitRedis(
  redis: RedisClient,
  options: { prefix: string; log: Logger; signal: AbortSignal },
): Promise<void> {
  const { prefix, log, signal } = options
  let findings: readonly RedisFinding[] = []
  const ask = async () => {
    findings = await checkRedis(redis, { prefix })
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
  const embedded = await startEmbeddedRedis({ dataDir, log, signal })
  teardown.push('embedded redis', () => embedded.stop())
  return { url: embedded.url }
}
