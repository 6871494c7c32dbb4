import type { Clock } from '../lib/clock.ts'
import { createRandom } from './random.ts'
import { type ApiRule, isoSeconds } from './rows.ts'

/**
 * When the sandbox evaluates the rules of its account, and what it announces of that in `lastEvaluatedAt` and
 * `nextEvaluationAt`. The API does not document what these two mean, so a client has to test them: the sandbox can announce
 * true, inexact and wrong times. An evaluation that fires publishes its alert 1 to 20 s later.
 */
export const announcements = ['true', 'noisy', 'wrong', 'null'] as const

/**
 * `true`: exactly. `noisy`: up to a minute too early or too late, and null one time in ten. `wrong`: instants that have
 * nothing to do with the evaluations. `null`: nothing.
 */
export type Announcement = (typeof announcements)[number]

interface Evaluations {
  /** The rule as the API shows it at `nowMs` (ms since the epoch). */
  announce(rule: ApiRule, nowMs: number): ApiRule
  /** The evaluations of all rules in `[fromMs, toMs)`, oldest first. */
  between(fromMs: number, toMs: number): readonly Evaluation[]
}

interface Evaluation {
  readonly ruleId: number
  readonly atMs: number
  /** When the alert that it fires is published; undefined where nothing fires. */
  readonly publishedMs: number | undefined
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

interface Cadence {
  readonly everyMs: number
  /** Since the epoch. */
  readonly offsetMs: number
}

/** In turn: every 5 and 15 minutes, hourly, at the close of the market (12:30 in Tehran), and at odd instants. */
const cadences: readonly [Cadence, ...Cadence[]] = [
  { everyMs: 5 * minuteMs, offsetMs: 0 },
  { everyMs: 15 * minuteMs, offsetMs: 2 * minuteMs },
  { everyMs: hourMs, offsetMs: 0 },
  { everyMs: dayMs, offsetMs: 9 * hourMs },
  { everyMs: 97 * minuteMs + 13_000, offsetMs: 41_000 },
]
/** Of the evaluations of one rule. */
const fireShare = 0.2
const publishMsMin = 1_000
const publishMsMax = 20_000
const noiseMsMax = minuteMs
const nullShare = 0.1

export function createEvaluations(
  rules: readonly Pick<ApiRule, 'id'>[],
  announcement: Announcement,
  seed: number,
): Evaluations {
  const cadenceOf = new Map(
    rules.map(({ id }, index) => [id, cadences[index % cadences.length] ?? cadences[0]] as const),
  )
  /** Returns the same for the same evaluation, however often and in whatever order it is called. */
  const chanceOf = (ruleId: number, count: number, use: number) =>
    createRandom(seed + 7_919 * ruleId + 104_729 * count + use).next()
  const evaluation = (ruleId: number, { everyMs, offsetMs }: Cadence, count: number): Evaluation => {
    const atMs = offsetMs + count * everyMs
    const fires = chanceOf(ruleId, count, 1) < fireShare
    const delayMs = publishMsMin + chanceOf(ruleId, count, 2) * (publishMsMax - publishMsMin)
    return { ruleId, atMs, publishedMs: fires ? atMs + delayMs : undefined }
  }
  const announced = (ruleId: number, cadence: Cadence, count: number): number | null => {
    const { everyMs, offsetMs } = cadence
    const atMs = offsetMs + count * everyMs
    const chance = chanceOf(ruleId, count, 3)
    switch (announcement) {
      case 'true':
        return atMs
      case 'noisy':
        return chanceOf(ruleId, count, 4) < nullShare ? null : atMs + (2 * chance - 1) * noiseMsMax
      case 'wrong':
        // Between one evaluation and the next, so that it still looks like a future instant.
        return atMs + chance * everyMs
      case 'null':
        return null
      default:
        return announcement satisfies never
    }
  }
  return {
    announce(rule, nowMs) {
      const cadence = cadenceOf.get(rule.id)
      if (cadence === undefined) return rule
      const last = Math.floor((nowMs - cadence.offsetMs) / cadence.everyMs)
      const text = (ms: number | null) => (ms === null ? null : isoSeconds(ms))
      return {
        ...rule,
        // A noisy or wrong time may be before or after now: it is announced all the same.
        lastEvaluatedAt: text(announced(rule.id, cadence, last)),
        nextEvaluationAt: text(announced(rule.id, cadence, last + 1)),
      }
    },
    between(fromMs, toMs) {
      const found = [...cadenceOf].flatMap(([ruleId, cadence]) => {
        const { everyMs, offsetMs } = cadence
        const first = Math.ceil((fromMs - offsetMs) / everyMs)
        const end = Math.ceil((toMs - offsetMs) / everyMs)
        return Array.from({ length: Math.max(0, end - first) }, (_, index) =>
          evaluation(ruleId, cadence, first + index),
        )
      })
      return found.sort((a, b) => a.atMs - b.atMs)
    },
  }
}

/** Publishes what the evaluations fire, from now on, until `signal` aborts. */
export function publishOnAndOn({ clock, evaluations, publish }: Publishing, signal: AbortSignal): void {
  void loop({ clock, evaluations, publish }, signal).catch((thrown: unknown) => {
    if (!signal.aborted) throw thrown
  })
}

interface Publishing {
  readonly clock: Clock
  readonly evaluations: Evaluations
  readonly publish: (ruleId: number) => void
}

/** The span of evaluations that the loop plans at a time. */
const aheadMs = 10 * minuteMs

async function loop({ clock, evaluations, publish }: Publishing, signal: AbortSignal): Promise<void> {
  let fromMs = clock.now()
  while (!signal.aborted) {
    const untilMs = fromMs + aheadMs
    const due = evaluations
      .between(fromMs - publishMsMax, untilMs)
      .flatMap(({ ruleId, publishedMs: atMs }) => (atMs === undefined ? [] : [{ ruleId, atMs }]))
      .filter(({ atMs }) => atMs >= fromMs && atMs < untilMs)
      .sort((a, b) => a.atMs - b.atMs)
    for (const { ruleId, atMs } of due) {
      await clock.sleep(Math.max(0, atMs - clock.now()), signal)
      if (signal.aborted) return
      publish(ruleId)
    }
    await clock.sleep(Math.max(0, untilMs - clock.now()), signal)
    fromMs = untilMs
  }
}
