import { usualOptions } from '../../src/app/schedule-options.ts'
import { type Announcement, createEvaluations } from '../../src/sandbox/evaluations.ts'
import type { RuleRow } from '../../src/sandbox/sandbox.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { evenLags } from '../../src/schedule/simulate.ts'
import { budgetDay } from '../../src/schedule/time/budget-day.ts'
import { benchStartMs } from './traces.ts'

/** Forty rules of the sandbox, whose evaluations are announced in one way, through the live planner; what each day waited, of even polls. */
export interface AnnouncedResult {
  /** Mean lag of each day, of that of even polls. */
  readonly days: readonly number[]
  /** The same from the second day on, and p99. */
  readonly mean: number
  readonly p99: number
  readonly readings: number
  readonly followed: boolean
  readonly microseconds: number
  readonly unitsMax: number
  readonly gapMs: number
}

const dayMs = 86_400_000

export function replayAnnounced(
  how: Announcement | 'unread',
  seed: number,
  days: number,
  unitsPerDay: number,
  rules: readonly Pick<RuleRow, 'id'>[] = Array.from({ length: 40 }, (_, index) => ({ id: index + 10 })),
): AnnouncedResult {
  const options = usualOptions(unitsPerDay)
  const evaluations = createEvaluations(rules, how === 'unread' ? 'null' : how, seed)
  const startMs = budgetDay(benchStartMs, options).startMs
  const fired = evaluations
    .between(startMs, startMs + days * dayMs)
    .flatMap(({ ruleId, publishedMs }) =>
      publishedMs === undefined ? [] : [{ ruleId, atMs: Math.floor(publishedMs) }],
    )
    .sort((a, b) => a.atMs - b.atMs)
  const schedule = createSchedule(options, undefined)
  const lags: number[] = []
  let day = budgetDay(startMs, options)
  let [nowMs, used, readings, unitsMax, polls, gapMs] = [startMs, 0, 0, 0, 0, 0]
  const begin = process.cpuUsage().user
  while (lags.length < fired.length) {
    const budget = () => ({ unitsPerDay, unitsLeft: unitsPerDay - used, day })
    if (how !== 'unread' && polls > 0 && used < unitsPerDay && schedule.wantsRules(nowMs, budget())) {
      const shown = rules.map((rule) => evaluations.announce(rule as RuleRow, nowMs))
      const instant = (text: string | null | undefined) => (text == null ? null : Date.parse(text))
      schedule.learnRules({
        atMs: nowMs,
        pages: 1,
        rules: shown.map(({ id, lastEvaluatedAt, nextEvaluationAt }) => ({
          id: String(id),
          name: null,
          lastMs: instant(lastEvaluatedAt),
          nextMs: instant(nextEvaluationAt),
        })),
      })
      used++
      readings++
    }
    const beforeMs = nowMs
    nowMs = Math.ceil(Math.max(nowMs, schedule.next(nowMs, budget()).atMs))
    if (polls > 0) gapMs = Math.max(gapMs, nowMs - beforeMs)
    if (nowMs >= day.endMs) {
      day = budgetDay(nowMs, options)
      used = 0
    }
    const seen: typeof fired = []
    for (let next = fired[lags.length]; next && next.atMs <= nowMs; next = fired[lags.length]) {
      lags.push(nowMs - next.atMs)
      seen.push(next)
    }
    schedule.observe({
      atMs: nowMs,
      ok: true,
      firedAtMs: seen.map(({ atMs }) => atMs),
      ruleIds: seen.map(({ ruleId }) => [String(ruleId)]),
      pages: 1,
      behind: false,
    })
    polls++
    used++
    unitsMax = Math.max(unitsMax, used)
  }
  const microseconds = (process.cpuUsage().user - begin) / polls
  const even = evenLags(
    fired.map(({ atMs }) => atMs),
    options,
  )
  const ratio = (from: number, to: number) => {
    const inside = fired.flatMap(({ atMs }, at) =>
      atMs >= startMs + from * dayMs && atMs < startMs + to * dayMs ? [at] : [],
    )
    const total = (values: ArrayLike<number>) => inside.reduce((sum, at) => sum + (values[at] ?? 0), 0)
    return total(lags) / total(even)
  }
  const rank = (values: readonly number[]) =>
    values.toSorted((a, b) => a - b)[Math.ceil(0.99 * values.length) - 1] ?? 0
  const later = fired.findIndex(({ atMs }) => atMs >= startMs + dayMs)
  return {
    days: Array.from({ length: days }, (_, index) => ratio(index, index + 1)),
    mean: ratio(1, days),
    p99: rank(lags.slice(later)) / rank([...even.slice(later)]),
    readings,
    followed: schedule.describe(nowMs).announced?.follows ?? false,
    ...{ microseconds, unitsMax, gapMs },
  }
}
