import { fingerprintOf } from '../config/fingerprint.ts'
import type { Config } from '../config/schema.ts'

/** The keys that a reload cannot change, each with its fingerprint. */
export function fixedParts(config: Config): ReadonlyMap<string, string> {
  const places = [
    ['http', 'listen'],
    ...Object.keys(config.redis).map((key) => ['redis', key]),
    ['dataDir'],
    ['traces'],
  ]
  const names = new Map([['redis.nodes', 'redis.cluster']])
  return new Map(
    places
      .map((keys) => [keys.join('.'), fingerprintOf(config, ...keys)] as const)
      // The mode follows from which of url, sentinels and cluster is set.
      .filter(([name]) => name !== 'redis.mode')
      .map(([name, fingerprint]) => [names.get(name) ?? name, fingerprint]),
  )
}

export function differing(from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>): string[] {
  return [...new Set([...from.keys(), ...to.keys()])].filter((key) => from.get(key) !== to.get(key))
}
