import { readJson } from '../../alert/json/json.ts'
import type { RedisClient } from '../connection/redis.ts'
import { spendingKeys } from './account.ts'

/** The budget that the API's refusals showed, as JSON that its reader checks; over restarts and replicas. */
export interface GrantStore {
  /** undefined when nothing was learned, or the stored text is no JSON. */
  load(): Promise<unknown>
  save(grant: unknown): Promise<void>
}

export function createGrantStore(options: {
  redis: RedisClient
  prefix: string
  source: string
  account?: string | undefined
}): GrantStore {
  const { redis } = options
  const { grant } = spendingKeys(options)
  return {
    async load() {
      const text = await redis.get(grant)
      return text === null ? undefined : readJson(text)
    },
    async save(value) {
      await redis.set(grant, JSON.stringify(value))
    },
  }
}
