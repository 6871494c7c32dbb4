import { fingerprintOf, shortMarkOf } from '../config/fingerprint.ts'
import type { Config, DisplayConfig, SinkConfig } from '../config/schema.ts'
import type { SinkEntry } from '../delivery/settings.ts'
import { toError, UserError } from '../lib/errors.ts'
import { createSink } from '../sinks/registry.ts'
import type { Sink } from '../sinks/sink.ts'
import { type BuiltParts, buildParts } from './built-parts.ts'

/**
 * The sinks of a config; those of `before` of which it says the same are taken over as they are. Throws a UserError over
 * a file of a sink (CA, key) that cannot be read.
 */
export function buildSinks(config: Config, before: BuiltParts<SinkEntry> = new Map()): BuiltParts<SinkEntry> {
  const { display } = config
  const displayed = fingerprintOf(config, 'display')
  return buildParts(Object.entries(config.sinks), before, {
    // What a message looks like is fixed when its sink is built.
    fingerprint: (name) => fingerprintOf(config, 'sinks', name) + displayed,
    build: (name, sink) => ({
      sink: build(name, sink, display),
      settings: settingsOf(sink),
      receiver: receiverMark(sink),
    }),
  })
}

function build(name: string, config: SinkConfig, display: DisplayConfig): Sink {
  try {
    return createSink(name, config, { display })
  } catch (thrown) {
    // The text of an error that was not made here may repeat an address with a secret in it.
    const why = thrown instanceof UserError ? thrown.message : `it cannot be built (${toError(thrown).name})`
    throw new UserError(`sinks.${name}: ${why}`)
  }
}

/** What says where alerts go and as whom; all else is how. */
const receiverKeys = [
  ...['type', 'url', 'baseUrl', 'smtp', 'proxy'],
  ...['auth', 'token', 'routingKey', 'chatId', 'threadId', 'topic'],
]

/** The same in every process as long as the config names the same place and user. */
export function receiverMark(sink: object): string {
  const values = new Map<string, unknown>(Object.entries(sink))
  return shortMarkOf(receiverKeys.map((key) => values.get(key) ?? null))
}

function settingsOf(sink: SinkConfig): SinkEntry['settings'] {
  const { timeout, concurrency, rateLimit, retry, expireAfter } = sink
  return {
    timeoutMs: timeout,
    concurrency,
    ...(rateLimit ? { rateLimit } : {}),
    retry: { attempts: retry.attempts, initialDelayMs: retry.initialDelay, maxDelayMs: retry.maxDelay },
    ...(expireAfter === undefined ? {} : { expireAfterMs: expireAfter }),
  }
}
