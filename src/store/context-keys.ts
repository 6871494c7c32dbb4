import { hashTag } from './keys.ts'

/** The keys of what was bought for alerts of one source, under the hash of its token. */
interface ContextKeys {
  /**
   * HASH, `<name> <instrument>` → when it was bought (ms) and its JSON, or why there is none; and `bytes`, how many all of them
   * have. Bounded in entries and bytes, the oldest is removed; removed a day after it was bought. Lost: bought again.
   */
  readonly values: string
  /** ZSET, the fields of `values` → when each was bought (ms), by which it is trimmed. Lost alone: `values` expires a day later. */
  readonly times: string
  /** STRING, the token of the process that buys this. Expires when it is not released. Lost: it may be bought twice. */
  lockOf(what: string): string
}

export function contextKeys(prefix: string, source: string, accountHash: string): ContextKeys {
  const root = `${hashTag(prefix)}:source:${source}:context:${accountHash.slice(0, 16)}`
  return {
    values: `${root}:values`,
    times: `${root}:times`,
    lockOf: (what) => `${root}:lock:${what}`,
  }
}

/**
 * STRING, units that context has used in these minutes, of all sources that count in one ledger. Expires at their end. Lost: a burst
 * may use as many once more.
 */
export function contextBurstKey(prefix: string, source: string, account: string | undefined): string {
  const spender = account === undefined ? `source:${source}` : `account:${account}`
  return `${hashTag(prefix)}:${spender}:context-burst`
}
