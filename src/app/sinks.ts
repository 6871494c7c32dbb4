import { fingerprintOf, shortHashOf } from '../config/fingerprint.ts'
import type { Config } from '../config/schema.ts'
import type { SinkEntry } from '../delivery/settings.ts'
import { toError, UserError } from '../lib/errors.ts'
import type { Drawer } from '../sinks/chart/drawer.ts'
import { createSink, type SharedTools, type SinkConfig } from '../sinks/registry.ts'
import type { Sink } from '../sinks/sink.ts'
import { type BuiltParts, buildParts } from './built-parts.ts'

/**
 * Builds the sinks of a config; those of `before` whose config is the same are kept. Throws a UserError when a sink
 * cannot be built, for example because its CA or key file cannot be read.
 */
export function buildSinks(
  config: Config,
  before: BuiltParts<SinkEntry> = new Map(),
  drawer?: Drawer,
): BuiltParts<SinkEntry> {
  const { display } = config
  const traces = config.traces !== undefined
  const displayed = fingerprintOf(config, 'display')
  return buildParts(Object.entries(config.sinks), before, {
    // A sink is built with the display settings: when these change, it is built anew.
    fingerprint: (name) => fingerprintOf(config, 'sinks', name) + displayed,
    build: (name, sink) => ({
      sink: build(name, sink, { display, drawer, traces }),
      settings: settingsOf(sink),
      receiver: receiverFingerprint(sink),
    }),
  })
}

function build(name: string, config: SinkConfig, shared: SharedTools): Sink {
  try {
    return createSink(name, config, shared)
  } catch (thrown) {
    // The text of an error of a library may repeat an address with a secret in it.
    const why = thrown instanceof UserError ? thrown.message : `it cannot be built (${toError(thrown).name})`
    throw new UserError(`sinks.${name}: ${why}`)
  }
}

/** The keys that say where alerts go and under which login; the others say only how they are sent. */
const receiverKeys = [
  ...['type', 'url', 'baseUrl', 'smtp', 'proxy'],
  ...['auth', 'token', 'routingKey', 'chatId', 'threadId', 'topic'],
]

/** A text that is the same in every process as long as the config has the same address and login. */
export function receiverFingerprint(sink: object): string {
  const values = new Map<string, unknown>(Object.entries(sink))
  return shortHashOf(receiverKeys.map((key) => values.get(key) ?? null))
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
