import { spendingKeys } from './account.ts'
import type { RedisClient } from './redis.ts'

/** What the feed's own refusals taught about the budget, as JSON that its reader checks; over restarts and replicas. */
export interface BudgetTruthStore {
  /** undefined when nothing was learned, or what stands there is no JSON. */
  load(): Promise<unknown>
  save(truth: unknown): Promise<void>
}

export function createBudgetTruthStore(options: {
  redis: RedisClient
  prefix: string
  source: string
  account?: string | undefined
}): BudgetTruthStore {
  const { redis } = options
  const { truth } = spendingKeys(options)
  return {
    async load() {
      const text = await redis.get(truth)
      try {
        return text === null ? undefined : JSON.parse(text)
      } catch {
        return undefined
      }
    },
    async save(value) {
      await redis.set(truth, JSON.stringify(value))
    },
  }
}
