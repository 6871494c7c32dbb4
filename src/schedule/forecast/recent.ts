/**
 * What the last hours add to the profile. The unit is the event: alerts that fire within three seconds of each other are
 * one event, for no poll could have come in between, and a batch of thirty says no more of the next minute than one
 * alert does. A rate is a sum: a share of the base rate (the profile, or the day's mean) and shares of three fading
 * averages of the events that came. The shares follow how many of the events each part predicted (the expectation step of
 * the EM algorithm for a self-exciting process; Hawkes 1971).
 */
export interface Recent {
  /** When the last poll was taken in; 0 before the first. */
  atMs: number
  /** Events a second at `atMs`, one average a memory. */
  readonly averages: number[]
  /** Events that each part predicted, fading: the base, then the averages; once with the profile as the base, once with the mean. */
  readonly credit: { readonly profile: number[]; readonly mean: number[] }
  /** Events of today, seen and expected by the profile. */
  readonly today: { seen: number; expected: number }
  /** The event that alerts were counted for last: when it began, and how many of its alerts counted. */
  readonly event: { startMs: number; counted: number }
}

/** Seconds until an average has faded to a third. */
export const memorySeconds = [60, 420, 3_600] as const
const eventMs = 3_000
/** Where so many events are usual within three seconds, each of twice as many counts: a feed of 5,000 a day has no batches. */
const usualFactor = 2
const youngCredit = [33, 5, 2, 3]
const creditKept = 0.8
/** What is remembered of credit, in events: a storm of thousands must not be believed in for weeks. */
const creditMax = 450
/** Events that a day's level starts from. */
const dayCaution = 3

export function emptyRecent(): Recent {
  return {
    atMs: 0,
    averages: memorySeconds.map(() => 0),
    credit: { profile: [...youngCredit], mean: [...youngCredit] },
    today: { seen: 0, expected: 0 },
    event: { startMs: 0, counted: 0 },
  }
}

/** A new day starts level, and credit of late is weighed against what is usual. */
export function startDay({ credit, today }: Recent): void {
  for (const each of [credit.profile, credit.mean])
    for (const [part, young] of youngCredit.entries())
      each[part] = creditKept * (each[part] ?? 0) + (1 - creditKept) * young
  today.seen = 0
  today.expected = 0
}

/** The alerts, oldest first, that count as events; `rateAt` is the rate that was expected of each. */
export function eventsOf(
  event: Recent['event'],
  firedAtMs: readonly number[],
  rateAt: (atMs: number) => number,
): number[] {
  return firedAtMs.filter((at) => {
    if (at < event.startMs || at >= event.startMs + eventMs) {
      event.startMs = at
      event.counted = 1
      return true
    }
    if (event.counted >= (usualFactor * rateAt(at) * eventMs) / 1_000) return false
    event.counted++
    return true
  })
}

/** Takes in the events that a poll found, and that the profile had expected so many. */
export function noteEvents(recent: Recent, atMs: number, events: readonly number[], expected: number): void {
  const seconds = Math.max(0, atMs - recent.atMs) / 1_000
  for (const [k, memory] of memorySeconds.entries()) {
    let average = (recent.averages[k] ?? 0) * Math.exp(-seconds / memory)
    for (const at of events) average += Math.exp(-Math.max(0, atMs - at) / 1_000 / memory) / memory
    recent.averages[k] = average
  }
  recent.today.seen += events.length
  recent.today.expected += expected
  recent.atMs = atMs
}

/** Credits the parts of both rates with their shares of an event, by what they knew at the last poll. */
export function creditParts(recent: Recent, profileRate: number, meanRate: number, seconds: number): void {
  const level = dayLevel(recent)
  const averages = recent.averages.map((value, k) => value * Math.exp(-seconds / (memorySeconds[k] ?? 1)))
  creditOne(recent.credit.profile, [profileRate * level, ...averages])
  creditOne(recent.credit.mean, [meanRate * level, ...averages])
}

/** Seen against expected, cautious while little was expected. */
export function dayLevel({ today }: Recent): number {
  return (dayCaution + today.seen) / (dayCaution + today.expected)
}

/** The share of each part, summing to 1. */
export function sharesOf(credit: readonly number[]): number[] {
  const total = credit.reduce((sum, each) => sum + each, 0)
  return credit.map((each) => each / total)
}

function creditOne(credit: number[], rates: readonly number[]): void {
  const predicted = rates.map((rate, part) => rate * (credit[part] ?? 0))
  const total = predicted.reduce((sum, each) => sum + each, 0)
  if (total <= 0) return
  const creditSum = credit.reduce((sum, each) => sum + each, 0) + 1
  const kept = Math.min(1, creditMax / creditSum)
  for (let part = 0; part < credit.length; part++)
    credit[part] = kept * ((credit[part] ?? 0) + (predicted[part] ?? 0) / total)
}
