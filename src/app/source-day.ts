import type { SourceDayView } from '../admin/ports.ts'
import type { Clock } from '../lib/clock.ts'
import { within } from '../lib/time-limit.ts'
import { wallTime } from '../lib/zone.ts'
import { budgetDay } from '../schedule/budget.ts'
import { profileZone } from '../schedule/forecast/profile.ts'
import { previewPlan } from '../schedule/preview.ts'
import type { ScheduleOptions } from '../schedule/schedule.ts'
import type { Spender } from '../store/account.ts'
import type { RedisClient } from '../store/redis.ts'
import type { ScheduleState } from '../store/schedule-state.ts'
import { readHours } from '../store/source-day.ts'

interface SourceDayOptions {
  readonly redis: RedisClient
  readonly spender: Spender
  readonly plan: ScheduleOptions
  readonly learned: Pick<ScheduleState, 'load'>
  /** That the plan of this source may use now; the API may grant fewer than the config has. */
  readonly unitsPerDay: () => Promise<number>
  readonly clock: Clock
}

/**
 * The budget day of a source, hour by hour. The plan is drawn anew only every minute: a page that is open asks with every
 * change.
 */
export function createSourceDay(options: SourceDayOptions): () => Promise<SourceDayView> {
  const { redis, spender, plan, learned, clock } = options
  let drawn: { readonly untilMs: number; readonly key: string; readonly hours: PlannedHours } | undefined
  return async () => {
    const day = budgetDay(clock.now(), plan)
    if (drawn === undefined || drawn.key !== day.key || drawn.untilMs < clock.monotonicMs()) {
      const known = Promise.all([learned.load(), options.unitsPerDay()])
      const [saved, unitsPerDay] = await within(readTimeoutMs, 'what was learned', known)
      // Hours of the wall clock: a day that begins within one also ends within one.
      const firstMs = day.startMs - (wallTime(day.startMs, profileZone(plan)) % hourMs)
      const count = Math.ceil((day.endMs - firstMs) / hourMs)
      const { hours } = previewPlan({ ...plan, unitsPerDay }, saved, day.startMs, count)
      drawn = { untilMs: clock.monotonicMs() + drawnForMs, key: day.key, hours }
    }
    const planned = drawn.hours
    const starts = planned.map(({ startMs }) => startMs)
    const { units, alerts } = await within(
      readTimeoutMs,
      'the hours of a source',
      readHours(redis, spender, day.key, starts),
    )
    return {
      source: spender.source,
      startedAt: new Date(day.startMs).toISOString(),
      resetsAt: new Date(day.endMs).toISOString(),
      hours: planned.map(({ startMs, polls }, at) => ({
        startedAt: new Date(startMs).toISOString(),
        planned: Math.round(polls * Math.min(1, (day.endMs - startMs) / hourMs) * 10) / 10,
        units: units[at] ?? 0,
        alerts: alerts[at] ?? 0,
      })),
    }
  }
}

type PlannedHours = ReturnType<typeof previewPlan>['hours']

const hourMs = 3_600_000
const drawnForMs = 60_000
const readTimeoutMs = 2_000
