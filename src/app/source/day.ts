import type { SourceDayView } from '../../admin/ports.ts'
import type { SourceConfig } from '../../config/schema.ts'
import type { Clock } from '../../lib/clock.ts'
import { within } from '../../lib/time-limit.ts'
import { wallTime } from '../../lib/zone.ts'
import { budgetDay } from '../../schedule/budget.ts'
import { previewPlan } from '../../schedule/preview.ts'
import type { BudgetDay, ScheduleOptions } from '../../schedule/schedule.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import type { Spender } from '../../store/ledger/account.ts'
import type { ScheduleState } from '../../store/source/schedule-state.ts'
import { readHours } from '../../store/source/source-day.ts'
import { scheduleOptionsOf, withUnits } from './schedule-options.ts'

interface SourceDayOptions {
  readonly redis: RedisClient
  readonly spender: Spender
  readonly config: Pick<SourceConfig, 'budget' | 'poll'>
  readonly learned: Pick<ScheduleState, 'load'>
  /** That the plan of this source may use now; the API may grant fewer than the config has. */
  readonly unitsPerDay: () => Promise<number>
  /** How many sources spend the units of its account. */
  readonly sharers: () => number
  /** That of the API, where its answers showed that it begins at another time than the config says. */
  readonly apiDay: () => Promise<BudgetDay | undefined>
  readonly clock: Clock
}

/**
 * The budget day of a source, hour by hour. The plan is drawn anew only every minute: a page that is open asks with every
 * change.
 */
export function createSourceDay(options: SourceDayOptions): () => Promise<SourceDayView> {
  const { redis, spender, config, learned, clock } = options
  const plan = scheduleOptionsOf(config)
  let drawn: { readonly untilMs: number; readonly startMs: number; readonly hours: PlannedHours } | undefined
  return async () => {
    const apiDay = await within(readTimeoutMs, 'the day of the API', options.apiDay())
    const day = apiDay === undefined ? budgetDay(clock.now(), plan) : toMinutes(apiDay)
    const { startMs } = day
    if (drawn?.startMs !== startMs || drawn.untilMs < clock.monotonicMs()) {
      const known = Promise.all([learned.load(), options.unitsPerDay()])
      const [saved, unitsPerDay] = await within(readTimeoutMs, 'what was learned', known)
      const resetsAt = resetOf(plan, apiDay)
      const { hours } = previewPlan(
        { ...withUnits(config, unitsPerDay), resetsAt },
        saved,
        startMs,
        (day.endMs - startMs) / hourMs,
      )
      drawn = { untilMs: clock.monotonicMs() + drawnForMs, startMs, hours }
    }
    const planned = drawn.hours
    const starts = planned.map((hour) => hour.startMs)
    // Units are counted by the days of the config.
    const keys = [startMs, day.endMs - 1].map((atMs) => budgetDay(atMs, plan).key)
    const { units, alerts } = await within(
      readTimeoutMs,
      'the hours of a source',
      readHours(redis, spender, { keys: [...new Set(keys)], ...day }, starts),
    )
    return {
      source: spender.source,
      startedAt: new Date(startMs).toISOString(),
      resetsAt: new Date(day.endMs).toISOString(),
      sharers: options.sharers(),
      // Hours of the wall clock: a day that begins within one also ends within one.
      hours: planned.map(({ startMs: fromMs, polls }, at) => ({
        startedAt: new Date(fromMs).toISOString(),
        planned: Math.round(polls * 10) / 10,
        units: units[at] ?? 0,
        alerts: alerts[at] ?? 0,
      })),
    }
  }
}

/** When budget days begin, `HH:MM` on the clock of the config's zone: by the API's own day where its answers showed another one. */
export function resetOf(
  { resetsAt, timeZone }: Pick<ScheduleOptions, 'resetsAt' | 'timeZone'>,
  apiDay: BudgetDay | undefined,
): string {
  return apiDay === undefined ? resetsAt : clockText(wallTime(toMinutes(apiDay).startMs, timeZone))
}

/** The API tells when its day begins as a wait in seconds, which ends a little beside the hour. */
function toMinutes({ key, startMs, endMs }: BudgetDay): BudgetDay {
  const rounded = (atMs: number) => Math.round(atMs / minuteMs) * minuteMs
  return { key, startMs: rounded(startMs), endMs: rounded(endMs) }
}

/** `HH:MM` of a wall time. */
function clockText(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(11, 16)
}

type PlannedHours = ReturnType<typeof previewPlan>['hours']

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const drawnForMs = 60_000
const readTimeoutMs = 2_000
