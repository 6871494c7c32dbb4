import { createFeed, type SandboxFeed } from './feed.ts'
import { createLimits, type Limits } from './limits.ts'
import type { Settings } from './options.ts'
import { createRandom } from './random.ts'
import type { ApiDelivery, ApiRule } from './rows.ts'

/** One account: its feed, its rules and its limits. */
export interface Account {
  readonly feed: SandboxFeed
  readonly limits: Limits
  /** Newest first, with the time each last fired, and the announced times of its evaluations. */
  rules(nowMs: number): readonly ApiRule[]
  setRule(id: number, fields: Partial<ApiRule>): boolean
  /** A new alert at the head of the feed, by `ruleId` where one is given. */
  fire(nowMs: number, fields: Partial<ApiDelivery>, ruleId?: number): ApiDelivery
  /** A row as the generator makes them, with an id of its own, in no feed yet. */
  make(firedAtMs: number): ApiDelivery
}

/** The average time between two alerts of the history. */
const historyGapMs = 600_000

export function createAccount(
  settings: Settings,
  history: { readonly rows: number; readonly firstId: number },
  nowMs: number,
): Account {
  const { generator, evaluations } = settings
  const feed = createFeed()
  const random = createRandom(settings.seed + 1)
  const nextId = createIds(settings.ids, history.firstId, settings.seed + 2)
  const lastFired = new Map<string, string>()
  const changed = new Map<number, Partial<ApiRule>>()
  const make = (firedAtMs: number, ruleId?: number) => generator.alert(nextId(), firedAtMs, ruleId)
  const add = (row: ApiDelivery) => {
    for (const id of row.ruleIds) lastFired.set(id, row.firedAt)
    feed.add(row)
    return row
  }
  const gapsMs = Array.from({ length: history.rows }, () => random.exponential(historyGapMs))
  let firedAtMs = nowMs - gapsMs.reduce((sum, gap) => sum + gap, 0)
  for (const gap of gapsMs) {
    add(make(firedAtMs))
    firedAtMs += gap
  }
  return {
    feed,
    limits: createLimits(settings.limits),
    rules: (atMs) =>
      generator.rules.map((rule) => {
        const fired = { ...rule, lastFiredAt: lastFired.get(String(rule.id)) ?? null }
        return { ...(evaluations?.announce(fired, atMs) ?? fired), ...changed.get(rule.id) }
      }),
    setRule(id, fields) {
      changed.set(id, { ...changed.get(id), ...fields })
      return generator.rules.some((rule) => rule.id === id)
    },
    fire: (atMs, fields, ruleId) => add({ ...make(atMs, ruleId), ...fields }),
    make,
  }
}

/** Shuffled ids come from a moving pool, so neighbours in time are near each other and in any order. */
function createIds(order: 'increasing' | 'shuffled', firstId: number, seed: number): () => number {
  let next = firstId
  if (order === 'increasing') return () => next++
  const random = createRandom(seed)
  const pool = Array.from({ length: 50 }, () => next++)
  return () => {
    const [id = next++] = pool.splice(random.int(pool.length), 1, next++)
    return id
  }
}
