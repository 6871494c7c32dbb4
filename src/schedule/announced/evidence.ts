import { isFarAhead } from '../../lib/waits.ts'
import { clamp } from '../pace/solve.ts'
import type { AnnouncedRule, AnnouncedView, RulesReading } from '../schedule.ts'

/**
 * Tests whether announced evaluations say when alerts are published, that is: "alerts of a rule can be read within a minute of
 * its evaluation". Every alert is evidence for or against it, and shows the delay, how many alerts an evaluation publishes,
 * and how many no evaluation explains.
 */
export interface Announced {
  rules: RuleTimes[]
  reading: {
    /** Null before the first reading. */
    atMs: number | null
    /** Pages of rules at the last reading; each cost a unit. */
    pages: number
    /** Readings in a row that announced nothing, or did not confirm what the one before had announced. */
    useless: number
  }
  /** Explained alerts by how many seconds after the evaluation they could be read; old ones count less and less. */
  delays: number[]
  explained: number
  other: number
  /** The part of the last rows whose clock lay before a poll that did not show them, or ahead of the poll that did. */
  lateShare: number
  /** The logarithm of what a bet on the announcements has won so far. */
  winnings: number
  follows: boolean
  /** What the plan uses: updated once an hour. */
  inUse: { hour: number; density: number[]; otherShare: number }
}

export const delaySeconds = 60
/** Alerts an evaluation before any was seen; and as how many evaluations of a rule the mean of all rules counts. */
const youngRate = 0.1
const rateCaution = 3
/** From so many evaluations of a rule, or alerts of all rules, on, each earlier one counts half. */
const passedMax = 300
const alertsMax = 600
/** As how many alerts the first assumptions count: that every delay is equally likely, and that half of the alerts are explained. */
const delayCaution = 4
const youngCount = 2
const hourMs = 3_600_000

export function emptyAnnounced(): Announced {
  const delays = new Array<number>(delaySeconds).fill(0)
  return {
    rules: [],
    reading: { atMs: null, pages: 1, useless: 0 },
    delays,
    explained: youngCount,
    other: youngCount,
    lateShare: 0,
    winnings: 0,
    follows: false,
    inUse: { hour: 0, density: densityOf(delays), otherShare: 0.5 },
  }
}

export function noteReading(announced: Announced, { atMs, pages, rules }: RulesReading): void {
  const { rules: known, reading } = announced
  // A replica that polls again offers its own last reading; the stored memory may have a later one.
  if (reading.atMs !== null && atMs <= reading.atMs && !isFarAhead(reading.atMs, atMs)) return
  // A first list without rules may be a mistake of the API: what was learned is kept until the next reading.
  const isDoubtful = rules.length === 0 && reading.useless === 0
  const read = isDoubtful ? { rules: known, confirmed: 0 } : readRules(known, rules, meanRate(known))
  announced.rules = read.rules
  const isUseful = read.confirmed > 0 && 2 * read.confirmed >= read.rules.length
  announced.reading = { atMs, pages, useless: isUseful ? 0 : reading.useless + 1 }
}

/** The first instant at which a row could be read, as far as polls show: between two instants, or at one. */
export interface Arrival {
  readonly fromMs: number
  readonly untilMs: number
}

/** The rule that explains an alert best, with the delays that its evaluations then had. */
interface Origin {
  readonly rule: RuleTimes
  /** How likely it is that the alert comes from one of them, and not by chance. */
  readonly share: number
  /** Each with its part of 1, and the instant that it leads to. */
  readonly delays: readonly { second: number; atMs: number; part: number }[]
}

/** An alert that a poll saw first. Where only an interval is known, delays count as the alerts before make them likely. */
export function noteAlert(announced: Announced, ruleIds: readonly string[], arrival: Arrival): void {
  const origin = originOf(announced, ruleIds, arrival)
  const share = origin?.share ?? 0
  announced.explained += share
  announced.other += 1 - share
  if (origin) origin.rule.fired += share
  for (const { second, part } of origin?.delays ?? [])
    announced.delays[second] = (announced.delays[second] ?? 0) + share * part
  if (announced.explained + announced.other > alertsMax) halve(announced)
}

/** When an alert could probably first be read; undefined where chance explains it better than announced evaluations do. */
export function likelyArrival(announced: Announced, ruleIds: readonly string[], arrival: Arrival) {
  const { share, delays } = originOf(announced, ruleIds, arrival) ?? { share: 0, delays: [] }
  if (share < 0.5) return undefined
  return Math.round(delays.reduce((mean, { atMs, part }) => mean + part * atMs, 0))
}

function originOf(
  { rules, inUse, explained, other }: Announced,
  ruleIds: readonly string[],
  arrival: Arrival,
): Origin | undefined {
  const seconds = Math.max(1, (arrival.untilMs - arrival.fromMs) / 1_000)
  let best: Origin | undefined
  for (const rule of rules) {
    if (!ruleIds.includes(rule.id)) continue
    const { chance, delays } = delaysOf(rule, inUse.density, arrival)
    const byRule = explained * chance
    const byChance = (other * seconds) / ((rule.periodMs || hourMs) / 1_000)
    const share = byRule / (byRule + byChance)
    if (byRule > 0 && share > (best?.share ?? 0)) best = { rule, share, delays }
  }
  return best
}

/** The delays after evaluations that lead into an arrival, and the chance of all together. */
function delaysOf(rule: RuleTimes, density: readonly number[], { fromMs, untilMs }: Arrival) {
  const evaluations = evaluationsBetween(rule, fromMs - delaySeconds * 1_000, untilMs)
  const found: Origin['delays'][number][] = []
  let chance = 0
  for (let each = 0; each < evaluations.count; each++) {
    const evaluatedMs = evaluations.startMs + each * evaluations.stepMs
    const last = Math.min(delaySeconds - 1, Math.floor((untilMs - evaluatedMs) / 1_000))
    for (let second = Math.max(0, Math.floor((fromMs - evaluatedMs) / 1_000)); second <= last; second++) {
      const part = density[second] ?? 0
      chance += part
      found.push({ second, atMs: clamp(evaluatedMs + (second + 0.5) * 1_000, fromMs, untilMs), part })
    }
  }
  return { chance, delays: found.map((delay) => ({ ...delay, part: delay.part / chance })) }
}

/** Counts the evaluations between two instants, each by how likely alerts were then. */
export function notePassed({ rules }: Announced, fromMs: number, toMs: number, likelihood: number): void {
  for (const rule of rules) {
    rule.passed += evaluationsBetween(rule, fromMs, toMs).count * likelihood
    if (rule.passed <= passedMax) continue
    rule.passed /= 2
    rule.fired /= 2
  }
}

/** Once an hour the plan takes over what was learned; returns whether it did. */
export function useLearned(announced: Announced, nowMs: number): boolean {
  const hour = Math.floor(nowMs / hourMs)
  if (announced.inUse.hour === hour) return false
  const { delays, explained, other, rules } = announced
  announced.inUse = { hour, density: densityOf(delays), otherShare: other / (explained + other) }
  const mean = meanRate(rules)
  for (const rule of rules) rule.rate = (rule.fired + rateCaution * mean) / (rule.passed + rateCaution)
  return true
}

/** The stake for each even wait of difference, and the longest wait that counts. Their product is below 1, so that no bet loses all. */
const stake = 0.2
const waitMax = 4
/** The forty rules of the sandbox reach `winningsToFollow` after about 200 events; of bets on chance, one in four hundred ever does. */
const winningsToFollow = 6
const winningsToStay = 1
const winningsMax = 12

/**
 * Bets on an event. Given are its waits, in mean waits of even polls: by the plan without announcements, and by the plan that
 * follows them.
 */
export function judgeAnnounced(
  announced: Announced,
  { without, following }: { readonly without: number; readonly following: number },
): void {
  const saved = Math.min(waitMax, without) - Math.min(waitMax, following)
  const winnings = announced.winnings + Math.log(1 + stake * saved)
  announced.winnings = Math.min(winningsMax, Math.max(0, winnings))
  announced.follows = announced.winnings >= (announced.follows ? winningsToStay : winningsToFollow)
}

/** How many rules are named at most: asked at each poll, and to sort five hundred takes longer than all else. */
const namedMax = 20

export function describeAnnounced({ follows, rules }: Announced): AnnouncedView | null {
  if (rules.length === 0) return null
  const named: RuleTimes[] = []
  for (const rule of rules) {
    let place = named.length
    while (place > 0 && (named[place - 1]?.fired ?? 0) < rule.fired) place--
    if (place < namedMax) named.splice(place, 0, rule)
    if (named.length > namedMax) named.pop()
  }
  return { follows, ruleCount: rules.length, rules: named.map(({ id, name }) => ({ id, name })) }
}

function meanRate(rules: readonly RuleTimes[]): number {
  let [fired, passed] = [rateCaution * youngRate, rateCaution]
  for (const rule of rules) {
    fired += rule.fired
    passed += rule.passed
  }
  return fired / passed
}

/** The chance of each delay in seconds, summing to about 1; each second is averaged with its neighbours. */
function densityOf(delays: readonly number[]): number[] {
  const total = delays.reduce((sum, count) => sum + count, 0) + delayCaution
  return delays.map((count, second) => {
    const [before, after] = [delays[second - 1] ?? count, delays[second + 1] ?? count]
    return ((before + 2 * count + after) / 4 + delayCaution / delaySeconds) / total
  })
}

function halve(announced: Announced): void {
  announced.delays = announced.delays.map((count) => count / 2)
  announced.explained /= 2
  announced.other /= 2
}

/** What the schedule stores of one rule. */
export interface RuleTimes {
  readonly id: string
  readonly name: string
  /** The next evaluation as the last reading announced it, and the earliest evaluation that is known. */
  readonly nextMs: number
  readonly firstMs: number
  /** From one evaluation to the next; 0 while only one evaluation is known. */
  readonly periodMs: number
  /** Announced evaluations so far, and the alerts that they explain; old ones count less and less. */
  passed: number
  fired: number
  /** Alerts of one evaluation, as the plan uses it. */
  rate: number
}

/** The API shows whole seconds. */
const toleranceMs = 1_500
/** Polls could not follow evaluations that are closer together. */
const periodMsMin = 60_000
const nameCharsMax = 60
/** Rules are shown newest first; of those that announce an evaluation, so many are taken in. */
export const rulesMax = 500

/** Takes over a reading of all rules. `confirmed` counts the rules that were evaluated when the reading before had announced it. */
export function readRules(
  known: readonly RuleTimes[],
  reading: readonly AnnouncedRule[],
  youngRate: number,
): { readonly rules: RuleTimes[]; readonly confirmed: number } {
  const before = new Map(known.map((rule) => [rule.id, rule]))
  let confirmed = 0
  const announcing = reading.flatMap(({ nextMs, ...rule }) => (nextMs === null ? [] : [{ ...rule, nextMs }]))
  const rules = announcing.slice(0, rulesMax).map((rule) => {
    const old = before.get(rule.id)
    const times = timesOf(old, rule.nextMs, rule.lastMs)
    if (times.isConfirmed) confirmed++
    const { passed, fired, rate } = old ?? { passed: 0, fired: 0, rate: youngRate }
    const { nextMs, firstMs, periodMs } = times
    const name = (rule.name ?? '').slice(0, nameCharsMax)
    return { id: rule.id, name, nextMs, firstMs, periodMs, passed, fired, rate }
  })
  return { rules, confirmed }
}

function timesOf(old: RuleTimes | undefined, nextMs: number, lastMs: number | null) {
  const firstMs = lastMs !== null && lastMs < nextMs ? lastMs : nextMs
  const gapMs = nextMs - firstMs
  if (!old || !isExpectedAt(old, nextMs) || !isExpectedAt(old, firstMs))
    return { nextMs, firstMs, periodMs: gapMs >= periodMsMin ? gapMs : 0, isConfirmed: false }
  // A gap of several periods is a pause, such as a night: the period does not change.
  const isPause = gapMs > old.periodMs + toleranceMs
  return {
    nextMs,
    firstMs: isPause ? nextMs : old.firstMs,
    periodMs: old.periodMs,
    isConfirmed: true,
  }
}

function isExpectedAt({ nextMs, periodMs }: RuleTimes, atMs: number): boolean {
  const periods = (atMs - nextMs) / periodMs
  return periodMs > 0 && Math.abs(periods - Math.round(periods)) * periodMs <= toleranceMs
}

/** The evaluations of a rule in `(fromMs, toMs]`: the first of them, and how many follow at which distance. */
export function evaluationsBetween(
  { nextMs, firstMs, periodMs }: RuleTimes,
  fromMs: number,
  toMs: number,
): { readonly startMs: number; readonly stepMs: number; readonly count: number } {
  const stepMs = periodMs > 0 ? periodMs : nextMs - firstMs || 1
  const placeOf = (atMs: number) => Math.floor((atMs - nextMs) / stepMs)
  const first = Math.max(placeOf(fromMs) + 1, placeOf(firstMs))
  const last = periodMs > 0 ? placeOf(toMs) : Math.min(0, placeOf(toMs))
  const count = toMs < firstMs ? 0 : Math.max(0, last - first + 1)
  return { startMs: nextMs + first * stepMs, stepMs, count }
}
