import { Secret } from '../lib/secret.ts'
import { parseSmtpUrl } from './email/smtp-url.ts'
import type { SinkConfig } from './sink-config.ts'
import { createGuard, isLoopbackName } from './transport/guard.ts'

/** A config that names an address itself which the guard refuses: every attempt would end as `blocked_address`. */
interface RefusedAddress {
  /** The key of the config that has the address. */
  readonly key: string
  /** Quotes no more than the host. */
  readonly message: string
}

/** Checks literal addresses and names of this machine; other names are resolved, and checked, only when they are used. */
export function refusedAddress(config: SinkConfig): RefusedAddress | undefined {
  const { allowPrivateNetworks } = config
  const guard = createGuard(allowPrivateNetworks)
  // A proxy resolves names itself, and its rules apply to them.
  const resolvesNames = !('proxy' in config) || config.proxy === undefined
  for (const [key, host] of namedHosts(config)) {
    const isName = /[a-z]\.?$/i.test(host)
    try {
      guard.checkLiteral(resolvesNames && isName && isLoopbackName(host) ? loopback : host)
    } catch (thrown) {
      return {
        key,
        message: `every send would end as blocked_address: ${thrown instanceof Error ? thrown.message : host}`,
      }
    }
  }
  return undefined
}

const loopback = '127.0.0.1'

function namedHosts(config: SinkConfig): [key: string, host: string][] {
  const smtp = 'smtp' in config ? parseSmtpUrl(textOf(config.smtp) ?? '') : undefined
  return [
    ...hostIn('url', 'url' in config ? config.url : undefined),
    ...hostIn('baseUrl', 'baseUrl' in config ? config.baseUrl : undefined),
    ...(smtp?.ok ? [['smtp', smtp.server.host] as [string, string]] : []),
  ]
}

/** In an address with values of the alert, the values come after the host. */
function hostIn(key: string, address: string | Secret | undefined): [string, string][] {
  const url = URL.parse((textOf(address) ?? '').split(/\{[{%]/, 1)[0] ?? '')
  return url === null ? [] : [[key, url.hostname]]
}

/** A file may contain another text by the time it is used, so it is not read here. */
function textOf(value: string | Secret | undefined): string | undefined {
  if (!(value instanceof Secret)) return value
  return value.file === undefined ? value.reveal() : undefined
}
