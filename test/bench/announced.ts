import { type Announcement, createEvaluations } from '../../src/sandbox/evaluations.ts'
import type { ApiRule } from '../../src/sandbox/sandbox.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import type { AnnouncedRule, Schedule } from '../../src/schedule/schedule.ts'
import { evenLags } from '../../src/schedule/simulate.ts'
import { benchOptions } from './compare.ts'
import { createRandom } from './random.ts'
import { benchStartMs } from './traces.ts'

/** Forty rules of the sandbox, announced in one way or not read at all, through the live planner with a simulated clock. */
interface AnnouncedHistory {
  readonly how: Announcement | 'unread'
  readonly seed: number
  readonly days: number
  readonly unitsPerDay: number
  /** From this day on, all evaluations are half a minute later than before. */
  readonly movesOnDay?: number
  /** What the clock of a row says that can be read at an instant; the instant itself where left out. */
  readonly datedMs?: (readableMs: number, index: number) => number
  /** Alerts are published between so many seconds after an evaluation, in place of 1 to 20; or so many, by an even part from 0 to 1. */
  readonly delaySeconds?: readonly [number, number] | ((part: number) => number)
  /** From this day on, what is announced is wrong. */
  readonly wrongFromDay?: number
  /** Alerts of a rule that announces nothing: so many a day, at random ones of marks that lie so many seconds apart. */
  readonly others?: { readonly perDay: number; readonly markSeconds: number }
  /** So many alerts a day at any time, in place of the rules' own; each rule is announced for the reading and every so many seconds after it. */
  readonly atAnyTime?: { readonly perDay: number; readonly everySeconds: number }
  /** So many alerts a day 1 to 20 s after whole minutes, for each of which ten rules are announced, and so many of others at any time. */
  readonly everyMinute?: { readonly perDay: number; readonly others: number }
}

interface AnnouncedResult {
  /** Mean lag of each day, as a part of that of even polls; and of all days but the first. */
  readonly days: readonly number[]
  readonly mean: number
  /** Of all days but the first, as a part of that of even polls. */
  readonly p99: number
  readonly readings: number
  /** At the end of each day. */
  readonly followed: readonly boolean[]
  readonly unitsPerDayMax: number
  readonly gapMsMax: number
  readonly microsecondsPerPoll: number
  readonly schedule: Schedule
}

/** What clocks of rows say that were published at an instant; of truly announced evaluations. */
export const datedOtherwise: Readonly<Record<string, (readableMs: number, index: number) => number>> = {
  'dated a minute and a half before': (at) => at - 90_000,
  'dated twenty seconds before': (at) => at - 20_000,
  'dated at any time of the five minutes before': (at, index) => at - Math.floor(partOf(index) * 300_000),
  'dated as if in another zone, 3:30 h before': (at) => at - 12_600_000,
  'dated an hour ahead': (at) => at + 3_600_000,
  'dated by the minute': (at) => Math.floor(at / 60_000) * 60_000,
  'dated by the hour': (at) => Math.floor(at / 3_600_000) * 3_600_000,
  'every second one dated up to two hours before': (at, index) =>
    index % 2 === 0 ? at : at - Math.floor(partOf(index) * 7_200_000),
  'one in ten dated up to an hour before': (at, index) =>
    index % 10 > 0 ? at : at - Math.floor(partOf(index) * 3_600_000),
}

/** A part from 0 to 1 that is evenly spread over neighbouring indices. */
function partOf(index: number): number {
  return (index * 0.618034) % 1
}

const dayMs = 86_400_000
const movedMs = 30_000
const rules = Array.from({ length: 40 }, (_, index) => ({ id: index + 10 }))

export function simulateAnnounced(history: AnnouncedHistory): AnnouncedResult {
  const { how, days, unitsPerDay } = history
  const options = benchOptions(unitsPerDay)
  const schedule = createSchedule(options, undefined)
  const { startMs } = budgetDay(benchStartMs, options)
  const dayOf = (atMs: number) => Math.floor((atMs - startMs) / dayMs)
  const { fired, shownAt } = historyOf(history, startMs)
  const datedMs = history.datedMs ?? ((readableMs: number) => readableMs)
  const lags: number[] = []
  const followed: boolean[] = []
  const spent = new Map<number, number>()
  let [readings, polls, gapMsMax] = [0, 0, 0]
  const begunMicroseconds = process.cpuUsage().user
  for (let nowMs = startMs; lags.length < fired.length; ) {
    const day = budgetDay(nowMs, options)
    const spend = () => spent.set(day.startMs, (spent.get(day.startMs) ?? 0) + 1)
    const budget = () => ({ unitsPerDay, unitsLeft: unitsPerDay - (spent.get(day.startMs) ?? 0), day })
    const firstSeen = lags.length
    const seen: typeof fired = []
    for (let next = fired[lags.length]; next && next.atMs <= nowMs; next = fired[lags.length]) {
      lags.push(nowMs - next.atMs)
      seen.push(next)
    }
    schedule.observe({
      ...{ atMs: nowMs, ok: true, pages: 1, pagesLeft: 'none' },
      firedAtMs: seen.map(({ atMs }, index) => datedMs(atMs, firstSeen + index)),
      ruleIds: seen.map(({ ruleId }) => [String(ruleId)]),
    })
    polls++
    spend()
    if (how !== 'unread' && budget().unitsLeft > 0 && schedule.wantsRules(nowMs, budget())) {
      schedule.learnRules({ atMs: nowMs, pages: 1, rules: shownAt(nowMs) })
      readings++
      spend()
    }
    followed[dayOf(nowMs)] = schedule.describe(nowMs).announced?.follows ?? false
    const nextMs = Math.ceil(Math.max(nowMs, schedule.next(nowMs, budget()).atMs))
    gapMsMax = Math.max(gapMsMax, nextMs - nowMs)
    nowMs = nextMs
  }
  const microsecondsPerPoll = (process.cpuUsage().user - begunMicroseconds) / polls
  const times = fired.map(({ atMs }) => atMs)
  const even = evenLags(times, options)
  const within = (from: number, to: number) => (_: number, at: number) => {
    const day = dayOf(times[at] ?? 0)
    return day >= from && day < to
  }
  const ratio = (from: number, to: number) =>
    sum(lags.filter(within(from, to))) / sum([...even].filter(within(from, to)))
  return {
    days: Array.from({ length: days }, (_, day) => ratio(day, day + 1)),
    mean: ratio(1, days),
    p99: p99(lags.filter(within(1, days))) / p99([...even].filter(within(1, days))),
    unitsPerDayMax: Math.max(...spent.values()),
    ...{ readings, followed, gapMsMax, microsecondsPerPoll, schedule },
  }
}

function historyOf(history: AnnouncedHistory, startMs: number) {
  if (history.everyMinute) return wholeMinutes(history, history.everyMinute, startMs)
  return history.atAnyTime
    ? rulesAtAnyTime(history, history.atAnyTime, startMs)
    : sandboxRules(history, startMs)
}

/** The alerts of the rules, and what a reading shows of them. */
function sandboxRules({ how, seed, days, ...changes }: AnnouncedHistory, startMs: number) {
  const real = createEvaluations(rules, how === 'unread' ? 'null' : how, seed)
  const wrong = createEvaluations(rules, 'wrong', seed)
  const movesMs = startMs + (changes.movesOnDay ?? Number.POSITIVE_INFINITY) * dayMs
  const laterMs = (delayMs: number) => {
    if (!changes.delaySeconds) return 0
    const part = (delayMs - 1_000) / 19_000
    if (typeof changes.delaySeconds === 'function') return 1_000 * changes.delaySeconds(part) - delayMs
    const [least, most] = changes.delaySeconds
    return 1_000 * (least + part * (most - least)) - delayMs
  }
  const wrongMs = startMs + (changes.wrongFromDay ?? Number.POSITIVE_INFINITY) * dayMs
  const fired = real
    .between(startMs, startMs + days * dayMs)
    .flatMap(({ ruleId, atMs, publishedMs }) =>
      publishedMs === undefined
        ? []
        : [{ ruleId, atMs: Math.floor(publishedMs + laterMs(publishedMs - atMs)) }],
    )
    .map(({ ruleId, atMs }) => ({ ruleId, atMs: atMs >= movesMs ? atMs + movedMs : atMs }))
    .concat(onMarks(changes.others, seed, startMs, days))
    .sort((a, b) => a.atMs - b.atMs)
  const shownAt = (nowMs: number): AnnouncedRule[] => {
    const shiftMs = nowMs >= movesMs ? movedMs : 0
    const instant = (text: string | null | undefined) => (text == null ? null : Date.parse(text) + shiftMs)
    return rules.map((rule) => {
      const { lastEvaluatedAt, nextEvaluationAt } = (nowMs >= wrongMs ? wrong : real).announce(
        rule as ApiRule,
        nowMs - shiftMs,
      )
      const [lastMs, nextMs] = [instant(lastEvaluatedAt), instant(nextEvaluationAt)]
      return { id: String(rule.id), name: `rule ${rule.id}`, lastMs, nextMs }
    })
  }
  return { fired, shownAt }
}

/** Alerts of the rules at any time, and what a reading shows of them. */
function rulesAtAnyTime(
  { seed, days }: AnnouncedHistory,
  { perDay, everySeconds }: NonNullable<AnnouncedHistory['atAnyTime']>,
  startMs: number,
) {
  const random = createRandom(seed)
  const fired = Array.from({ length: perDay * days }, () => ({
    ruleId: 10 + Math.floor(random.next() * rules.length),
    atMs: startMs + Math.floor(random.next() * days * dayMs),
  })).sort((a, b) => a.atMs - b.atMs)
  const shownAt = (nowMs: number): AnnouncedRule[] =>
    rules.map(({ id }) => ({
      id: String(id),
      name: null,
      lastMs: nowMs,
      nextMs: nowMs + 1_000 * everySeconds,
    }))
  return { fired, shownAt }
}

/** Rules of every whole minute, other alerts, and what a reading shows of the rules. */
function wholeMinutes(
  { seed, days }: AnnouncedHistory,
  { perDay, others }: NonNullable<AnnouncedHistory['everyMinute']>,
  startMs: number,
) {
  const random = createRandom(seed)
  const minuteMs = (atMs: number) => Math.floor(atMs / 60_000) * 60_000
  const anyMs = () => startMs + Math.floor(random.next() * days * dayMs)
  const ofRules = Array.from({ length: perDay * days }, () => ({
    ruleId: 10 + Math.floor(random.next() * 10),
    atMs: Math.floor(minuteMs(anyMs()) + 1_000 + 19_000 * random.next()),
  }))
  const ofOthers = Array.from({ length: others * days }, () => ({ ruleId: 9, atMs: anyMs() }))
  const shownAt = (nowMs: number): AnnouncedRule[] =>
    rules.slice(0, 10).map(({ id }) => {
      const lastMs = minuteMs(nowMs)
      return { id: String(id), name: null, lastMs, nextMs: lastMs + 60_000 }
    })
  return { fired: [...ofRules, ...ofOthers].sort((a, b) => a.atMs - b.atMs), shownAt }
}

function onMarks(others: AnnouncedHistory['others'], seed: number, startMs: number, days: number) {
  if (others === undefined) return []
  const random = createRandom(seed)
  const stepMs = others.markSeconds * 1_000
  const markMs = () => startMs + Math.floor((random.next() * days * dayMs) / stepMs) * stepMs
  return Array.from({ length: others.perDay * days }, () => ({
    ruleId: 9,
    atMs: Math.floor(markMs() + 300 + 1_200 * random.next()),
  }))
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0)
}

function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(0.99 * values.length) - 1] ?? 0
}
