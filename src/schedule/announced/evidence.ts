import { isFarAhead } from '../../lib/waits.ts'
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
    winnings: 0,
    follows: false,
    inUse: { hour: 0, density: densityOf(delays), otherShare: 0.5 },
  }
}

export function noteReading(announced: Announced, { atMs, pages, rules }: RulesReading): void {
  // A replica that polls again offers its own last reading; the stored memory may have a later one.
  if (
    announced.reading.atMs !== null &&
    atMs <= announced.reading.atMs &&
    !isFarAhead(announced.reading.atMs, atMs)
  )
    return
  // A first list without rules may be a mistake of the API: what was learned is kept until the next reading.
  const isDoubtful = rules.length === 0 && announced.reading.useless === 0
  const read = isDoubtful
    ? { rules: announced.rules, confirmed: 0 }
    : readRules(announced.rules, rules, meanRate(announced.rules))
  announced.rules = read.rules
  const isUseful = read.confirmed > 0 && 2 * read.confirmed >= read.rules.length
  announced.reading = { atMs, pages, useless: isUseful ? 0 : announced.reading.useless + 1 }
}

/** With fewer units a day, no page of rules is bought. */
const unitsToRead = 200
/** The share of the units that pages of rules may cost while polls follow the announcements, and while they do not. */
const paidShare = { following: 0.02, testing: 0.005 }
const checkMs = 6 * hourMs
/** The second reading comes half an hour after the first; after each reading that was of no use the pause is longer. */
const testMs = hourMs / 2
const testFactor = 4
const testMsMax = 8 * 24 * hourMs

/** Whether to read the rules now: for the first time, or to see whether what they announced is still right. */
export function isReadingDue({ reading, follows }: Announced, nowMs: number, unitsPerDay: number): boolean {
  const { atMs, pages, useless } = reading
  if (unitsPerDay < unitsToRead) return false
  if (atMs === null || isFarAhead(atMs, nowMs)) return true
  const share = follows ? paidShare.following : paidShare.testing
  const paidMs = (24 * hourMs * pages) / (share * unitsPerDay)
  const pauseMs = useless === 0 ? checkMs : Math.min(testMsMax, testMs * testFactor ** (useless - 1))
  return nowMs >= atMs + Math.max(paidMs, pauseMs)
}

/** An alert that a poll saw first: `readableMs` is when its row could be read, as far as polls show. */
export function noteAlert(announced: Announced, ruleIds: readonly string[], readableMs: number): void {
  let best: { rule: RuleTimes; second: number; share: number } | undefined
  for (const rule of announced.rules) {
    if (!ruleIds.includes(rule.id)) continue
    const second = Math.floor((readableMs - latestBefore(rule, readableMs)) / 1_000)
    if (!(second < delaySeconds)) continue
    const share = explainedShare(announced, rule, second)
    if (!best || share > best.share) best = { rule, second, share }
  }
  const share = best?.share ?? 0
  announced.explained += share
  announced.other += 1 - share
  if (best) {
    best.rule.fired += share
    announced.delays[best.second] = (announced.delays[best.second] ?? 0) + share
  }
  if (announced.explained + announced.other > alertsMax) halve(announced)
}

/** How likely it is that an alert so long after an evaluation of its rule comes from it, and not by chance. */
function explainedShare({ inUse, explained, other }: Announced, rule: RuleTimes, second: number): number {
  const cycleSeconds = (rule.periodMs || hourMs) / 1_000
  const byRule = explained * (inUse.density[second] ?? 0)
  return byRule / (byRule + other / cycleSeconds)
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

/** How many rules are named at most: in all, and in a sentence. */
const namedMax = 20
const inTextMax = 5

export function describeAnnounced({ follows, rules }: Announced): AnnouncedView | null {
  if (rules.length === 0) return null
  const named = rules.toSorted((a, b) => b.fired - a.fired).slice(0, namedMax)
  return { follows, ruleCount: rules.length, rules: named.map(({ id, name }) => ({ id, name })) }
}

/** A sentence for people. It names the rules only while polls follow them. The names are text from the API. */
export function announcedText({ follows, ruleCount, rules }: AnnouncedView): string {
  const newest = ruleCount < rulesMax ? '' : 'the newest '
  const count = `${newest}${ruleCount} ${ruleCount === 1 ? 'rule' : 'rules'}`
  if (!follows)
    return `The API announces evaluations of ${count}; polls do not follow them, as far as alerts have shown.`
  const shown = rules.slice(0, inTextMax).map(({ id, name }) => (name === '' ? id : `${id} ${name}`))
  const more = ruleCount > shown.length ? ` and ${ruleCount - shown.length} more` : ''
  return `Polls follow the evaluations that the API announces of ${count} (${shown.join(', ')}${more}).`
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
const rulesMax = 500

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

/** The latest evaluation at or before an instant; NaN where none is known. */
export function latestBefore({ nextMs, firstMs, periodMs }: RuleTimes, atMs: number): number {
  if (atMs < firstMs) return Number.NaN
  if (periodMs > 0) return nextMs + Math.floor((atMs - nextMs) / periodMs) * periodMs
  return atMs < nextMs ? firstMs : nextMs
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
