/**
 * When the rules of an account are evaluated, as the API announces it: the last and the next evaluation of each rule. Later
 * ones are expected at the same distance, so that the rules need not be read again after each; the next reading shows
 * whether that was right.
 */
export interface AnnouncedRule {
  readonly id: string
  readonly name: string | null
  readonly lastMs: number | null
  /** Null where nothing is announced, or the rule is switched off. */
  readonly nextMs: number | null
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
const rulesMax = 500

/** Takes over a reading of all rules. `confirmed` counts the rules that were evaluated when the reading before had announced it. */
export function readRules(
  known: readonly RuleTimes[],
  reading: readonly AnnouncedRule[],
  youngRate: number,
): { readonly rules: RuleTimes[]; readonly confirmed: number } {
  const before = new Map(known.map((rule) => [rule.id, rule]))
  let confirmed = 0
  const rules = reading.slice(0, rulesMax).flatMap((rule) => {
    if (rule.nextMs === null) return []
    const old = before.get(rule.id)
    const times = timesOf(old, rule.nextMs, rule.lastMs)
    if (times.isConfirmed) confirmed++
    const { passed, fired, rate } = old ?? { passed: 0, fired: 0, rate: youngRate }
    const { nextMs, firstMs, periodMs } = times
    const name = (rule.name ?? '').slice(0, nameCharsMax)
    return [{ id: rule.id, name, nextMs, firstMs, periodMs, passed, fired, rate }]
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

/** Calls `use` with every evaluation of a rule in `(fromMs, toMs]`, latest first. */
export function eachBetween(
  rule: RuleTimes,
  fromMs: number,
  toMs: number,
  use: (atMs: number) => void,
): void {
  for (let at = latestBefore(rule, toMs); at > fromMs; at = latestBefore(rule, at - 1)) use(at)
}
