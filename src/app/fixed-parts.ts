import { fingerprintOf } from '../config/fingerprint.ts'
import type { Config } from '../config/schema.ts'

/** What a reload cannot change under a running process: keys with fingerprints. */
export function fixedParts(config: Config): ReadonlyMap<string, string> {
  const places = [['http', 'listen'], ...Object.keys(config.redis).map((key) => ['redis', key]), ['dataDir']]
  const names = new Map([['redis.nodes', 'redis.cluster']])
  return new Map(
    places
      .map((keys) => [keys.join('.'), fingerprintOf(config, ...keys)] as const)
      // Which of url, sentinels and cluster is there says it already.
      .filter(([name]) => name !== 'redis.mode')
      .map(([name, mark]) => [names.get(name) ?? name, mark]),
  )
}

export function differing(from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>): string[] {
  return [...new Set([...from.keys(), ...to.keys()])].filter((key) => from.get(key) !== to.get(key))
}
