import { wallTime } from '../lib/zone.ts'
import { budgetDay } from './budget-day.ts'
import { type DayPlan, planDay, stepMs } from './day-plan.ts'
import { type MarkPlan, markLimits, planMarks, pollsFor } from './mark-plan.ts'
import { emptyMemory, readMemory } from './memory.ts'
import type { ScheduleOptions } from './options.ts'
import { outlookAt } from './outlook.ts'
import { addSpan, clamp, createSpans, type Limits, solveScale } from './pace.ts'
import { profileZone } from './prior.ts'
import { learnedAlerts } from './profile.ts'

/** The plan of the hours to come as the profile has it: no burst and no lull, which nobody can know of yet. */
export interface Preview {
  readonly hours: readonly PreviewHour[]
  /** Weighed by the alerts that are expected. */
  readonly lagSeconds: number
  readonly evenLagSeconds: number
  /** The best that any schedule could reach against even polls, were the profile the truth: (∫√λ)² / (T ∫λ). */
  readonly bestRatio: number
  readonly alertsPerDay: number
  readonly learnedFrom: number
  readonly slowestSeconds: number
  readonly fastestSeconds: number
  readonly marks: MarkPlan | undefined
}

export interface PreviewHour {
  readonly startMs: number
  readonly polls: number
  readonly alerts: number
  readonly lagSeconds: number
}

interface Step {
  readonly atMs: number
  readonly seconds: number
  readonly alerts: number
  readonly polls: number
  readonly lagSeconds: number
}

export function previewPlan(options: ScheduleOptions, saved: unknown, nowMs: number, hours: number): Preview {
  const memory = readMemory(saved) ?? emptyMemory()
  const marks = memory.lockedOn ? planMarks(memory.lockedOn, markLimits(options), true) : undefined
  // The hour that has begun is drawn whole.
  const endMs = nowMs + hours * 3_600_000
  const steps: Step[] = []
  for (let at = nowMs; at < endMs; ) {
    const plan = planDay(memory.profile, budgetDay(at, options), options)
    const level = outlookAt(memory.intensity, at).level
    for (const step of stepsOf(plan, options, marks, at === nowMs ? level : 1))
      if (step.atMs + step.seconds * 1_000 > at && step.atMs < endMs) steps.push(step)
    at = plan.day.endMs
  }
  const total = (of: (step: Step) => number) => steps.reduce((sum, step) => sum + of(step), 0)
  const alerts = total((step) => step.alerts)
  const seconds = total((step) => step.seconds)
  const roots = total((step) => Math.sqrt(step.alerts * step.seconds))
  const even = 86_400 / options.unitsPerDay
  return {
    hours: byHour(steps, nowMs, hours, profileZone(options)),
    lagSeconds: total((step) => step.alerts * step.lagSeconds) / alerts,
    evenLagSeconds: even / 2,
    bestRatio: roots ** 2 / (seconds * alerts),
    alertsPerDay: (alerts / seconds) * 86_400,
    learnedFrom: learnedAlerts(memory.profile),
    slowestSeconds: Math.min(options.maxIntervalMs / 1_000, even / options.floor),
    fastestSeconds: options.minIntervalMs / 1_000,
    marks,
  }
}

function stepsOf(
  plan: DayPlan,
  options: ScheduleOptions,
  marks: MarkPlan | undefined,
  level: number,
): Step[] {
  const { day, rates, demands } = plan
  const spans = createSpans(demands.length)
  const stepEnd = (step: number) => Math.min(day.endMs, day.startMs + (step + 1) * stepMs)
  for (const [step, demand] of demands.entries())
    addSpan(spans, (stepEnd(step) - day.startMs - step * stepMs) / 1_000, demand)
  const response = marks && ((perSecond: number) => pollsFor(marks, perSecond))
  const limits = limitsOf(options, day.endMs - day.startMs)
  const scale = solveScale(spans, options.unitsPerDay, limits, 1, response)
  return Array.from(demands, (demand, step) => {
    const seconds = spans.seconds[step] ?? 0
    const wish = scale * demand
    const pace = clamp(response ? response(wish) : wish, limits.floor, limits.ceiling)
    return {
      atMs: day.startMs + step * stepMs,
      seconds,
      alerts: (rates[step] ?? 0) * seconds * level,
      polls: pace * seconds,
      lagSeconds: marks ? lagOnMarks(marks, pace * 60) : 0.5 / pace,
    }
  })
}

function limitsOf(options: ScheduleOptions, dayMs: number): Limits {
  const even = (options.unitsPerDay * 1_000) / dayMs
  const ceiling = 1_000 / options.minIntervalMs
  const floor = Math.min(Math.max(1_000 / options.maxIntervalMs, options.floor * even), even, ceiling)
  return { floor, ceiling }
}

/** Between whole numbers of polls a minute the wait is drawn as a straight line. */
function lagOnMarks({ waitSeconds, savedSeconds }: MarkPlan, pollsPerMinute: number): number {
  if (pollsPerMinute < 1) return 30 * (1 / pollsPerMinute - 1) + waitSeconds
  let wait = waitSeconds
  for (let polls = 1; polls < savedSeconds.length && polls < pollsPerMinute; polls++)
    wait -= (savedSeconds[polls] ?? 0) * Math.min(1, pollsPerMinute - polls)
  return wait
}

function byHour(steps: readonly Step[], nowMs: number, hours: number, zone: string): PreviewHour[] {
  const hourMs = 3_600_000
  const firstMs = nowMs - (wallTime(nowMs, zone) % hourMs)
  return Array.from({ length: hours }, (_, hour) => {
    const startMs = firstMs + hour * hourMs
    const inside = steps.filter(({ atMs }) => atMs >= startMs && atMs < startMs + hourMs)
    const alerts = inside.reduce((sum, step) => sum + step.alerts, 0)
    return {
      startMs,
      alerts,
      polls: inside.reduce((sum, step) => sum + step.polls, 0),
      lagSeconds:
        inside.reduce((sum, step) => sum + step.alerts * step.lagSeconds, 0) / Math.max(1e-9, alerts),
    }
  })
}
