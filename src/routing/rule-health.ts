import { datedAt } from '../alert/fired-at.ts'
import { cut, oneLine } from '../alert/text/text.ts'

/**
 * Which rules cannot be expected to fire, as one reading of them shows: silence of the feed may mean a dead rule. Pure.
 *
 * The document names the fields and not what follows from their values, so a rule counts as silent only where a reading
 * shows it: lateness is measured against the latest evaluation or alert on pages that were read with it, which an old copy of
 * them does not have; and only active hours count, since an engine may show an evaluation as due while the market is closed.
 */
type RuleTrouble = 'disabled' | 'not_armed' | 'not_evaluated'

export interface SilentRule {
  readonly id: string
  /** Text from outside, cut; empty where the rule has none. */
  readonly name: string
  readonly trouble: RuleTrouble
  /** For people, in a few words; part of it is text from outside. */
  readonly text: string
}

type Row = Readonly<Record<string, unknown>>

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** An engine that works evaluates a rule soon after the time that it shows, at the latest two periods of the rule later. */
const lateMsMin = hourMs
const latePeriods = 2
/** Where nothing on the page is newer than the rule, the page itself may be old. */
const silentPageMs = dayMs
/** A rule that has just fired may rest before it is armed again. */
const restAfterFiringMs = dayMs
const activeMsMin = hourMs
/** Little beside `lateMsMin`: what one page shows is about as old as what another one does. */
const togetherMs = 10 * 60_000
const textCharsMax = 200

/** `readAt` of each: when its page was read. Those of one reading may be hours apart. */
export function silentRules(rules: readonly Row[], isActive: (atMs: number) => boolean): SilentRule[] {
  const pages = [...Map.groupBy(rules, ({ readAt }) => Date.parse(String(readAt)) || 0)]
  const silent = pages.flatMap(([atMs, page]) => {
    const together = pages.filter(([otherMs]) => Math.abs(otherMs - atMs) <= togetherMs)
    const latestMs = latestOf(
      together.flatMap(([, each]) => each),
      Math.max(...together.map(([otherMs]) => otherMs)),
    )
    return silentOnPage(page, { atMs, latestMs, isActive })
  })
  const byId = new Map(silent.map((each) => [each.id, each]))
  return rules.flatMap(({ id }) => byId.get(String(id)) ?? [])
}

interface PageRead {
  readonly atMs: number
  /** The latest evaluation or alert that pages read at about this time show. */
  readonly latestMs: number | undefined
  readonly isActive: (atMs: number) => boolean
}

function silentOnPage(rules: readonly Row[], { atMs, latestMs, isActive }: PageRead): SilentRule[] {
  const limits = {
    byPage: latestMs === undefined ? undefined : beforeActive(latestMs, isActive),
    byClock: beforeActive(atMs, isActive),
  }
  return rules.flatMap((rule) => {
    const found = troubleOf(rule)
    return found === undefined ? [] : [{ id: String(rule['id']), name: nameOf(rule), ...found }]
  })

  function troubleOf(rule: Row): Pick<SilentRule, 'trouble' | 'text'> | undefined {
    const { disabledReason, isActive: isOn, isArmed } = rule
    if (typeof disabledReason === 'string' && disabledReason !== '')
      return { trouble: 'disabled', text: `disabled: ${short(disabledReason)}` }
    // Its owner has switched it off.
    if (isOn === false) return undefined
    const firedMs = datedAt(rule['lastFiredAt'])
    if (isArmed === false && !(firedMs !== null && atMs - firedMs < restAfterFiringMs))
      return { trouble: 'not_armed', text: 'not armed' }
    return lateness(rule)
  }

  function lateness(rule: Row): Pick<SilentRule, 'trouble' | 'text'> | undefined {
    const [lastMs, nextMs] = [datedAt(rule['lastEvaluatedAt']), datedAt(rule['nextEvaluationAt'])]
    if (nextMs === null) return undefined
    const periodMs = lastMs === null ? 0 : Math.max(0, nextMs - lastMs)
    const allowedMs = Math.max(lateMsMin, latePeriods * periodMs)
    const isBehindPage =
      latestMs !== undefined && nextMs < latestMs - allowedMs && nextMs < (limits.byPage ?? 0)
    const newestMs = Math.max(nextMs, latestMs ?? 0)
    const isPageSilent = newestMs < atMs - Math.max(silentPageMs, allowedMs) && newestMs < limits.byClock
    if (!isBehindPage && !isPageSilent) return undefined
    const last = lastMs === null ? 'never evaluated' : `last evaluated ${isoOf(lastMs)}`
    return { trouble: 'not_evaluated', text: `${last}, was due ${isoOf(nextMs)}` }
  }
}

/** Whether a page is an older copy: more of its rules were evaluated earlier than `before` shows than later. */
export function isOlderCopy(rules: readonly Row[], before: ReadonlyMap<string, Row>): boolean {
  let [earlier, later] = [0, 0]
  for (const rule of rules) {
    const wasMs = datedAt(before.get(String(rule['id']))?.['lastEvaluatedAt'])
    const isMs = datedAt(rule['lastEvaluatedAt'])
    if (wasMs === null || isMs === null) continue
    if (isMs < wasMs) earlier += 1
    if (isMs > wasMs) later += 1
  }
  return earlier > later
}

/** The latest evaluation or alert that the rules show; one that lies ahead says nothing. */
function latestOf(rules: readonly Row[], atMs: number): number | undefined {
  const times = rules.flatMap((rule) => [datedAt(rule['lastEvaluatedAt']), datedAt(rule['lastFiredAt'])])
  return times.reduce<number | undefined>(
    (latest, ms) => (ms === null || ms > atMs + 60_000 || (latest ?? 0) > ms ? latest : ms),
    undefined,
  )
}

/** The instant from which to `untilMs` an hour of active time has passed, at most a month back. */
function beforeActive(untilMs: number, isActive: (atMs: number) => boolean): number {
  const stepMs = hourMs / 4
  let activeMs = 0
  for (let atMs = untilMs - stepMs; atMs > untilMs - 31 * dayMs; atMs -= stepMs) {
    if (isActive(atMs)) activeMs += stepMs
    if (activeMs >= activeMsMin) return atMs
  }
  return Number.NEGATIVE_INFINITY
}

function nameOf({ name }: Row): string {
  return typeof name === 'string' ? short(name) : ''
}

function short(text: string): string {
  return cut(oneLine(text), textCharsMax)
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
}
