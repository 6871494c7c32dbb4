import type { Config, SinkConfig } from '../config/schema.ts'
import type { SinkEntry } from '../delivery/settings.ts'
import { createSink } from '../sinks/registry.ts'

export type SinkMap = ReadonlyMap<string, SinkEntry>

/** Throws a UserError over a file of a sink (CA, key) that cannot be read. */
export function buildSinks(config: Config): SinkMap {
  const { display } = config
  return new Map(
    Object.entries(config.sinks).map(([name, sink]) => [
      name,
      { sink: createSink(name, sink, { display }), settings: settingsOf(sink) },
    ]),
  )
}

export async function closeSinks(sinks: SinkMap): Promise<void> {
  await Promise.allSettled([...sinks.values()].map(({ sink }) => sink.close()))
}

function settingsOf(sink: SinkConfig): SinkEntry['settings'] {
  const { timeout, concurrency, rateLimit, retry, expireAfter } = sink
  return {
    timeoutMs: timeout,
    concurrency,
    ...(rateLimit ? { rateLimit: { max: rateLimit.max, perMs: rateLimit.per } } : {}),
    retry: { attempts: retry.attempts, initialDelayMs: retry.initialDelay, maxDelayMs: retry.maxDelay },
    ...(expireAfter === undefined ? {} : { expireAfterMs: expireAfter }),
  }
}
