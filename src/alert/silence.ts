import type { Alert } from './alert.ts'
import type { RuleFacts } from './match/fields.ts'
import { isComparedWhole, type Match, matchAlert, type RuleLookup } from './match/match.ts'
import type { Steps } from './match/turns.ts'

/** Alerts that an operator does not want to be sent for a while, over all routes. */
export interface Silence {
  readonly id: string
  readonly match: Match
  readonly startsAtMs: number
  readonly endsAtMs: number
  readonly comment: string
}

/** Those that are active at `nowMs`, the one that ends last first: it explains how long no alert is sent. */
export function silencesAt(silences: readonly Silence[], nowMs: number): readonly Silence[] {
  return silences
    .filter(({ startsAtMs, endsAtMs }) => startsAtMs <= nowMs && nowMs < endsAtMs)
    .sort((a, b) => b.endsAtMs - a.endsAtMs)
}

/**
 * Whether a silence with this match holds the alert back. Not where the rule that it asks for is not known, nor where `not` was
 * asked of more than is compared: losing is worse.
 */
export function* isSilenced(alert: Alert, match: Match, ruleOf: RuleLookup): Steps<boolean> {
  // A rule may be read meanwhile: both questions are about the same reading of it.
  const asked = new Map<string, RuleFacts | undefined>()
  const askOnce: RuleLookup = (source, id) => {
    if (!asked.has(id)) asked.set(id, ruleOf(source, id))
    return asked.get(id)
  }
  return (
    isComparedWhole(alert, match, askOnce) && (yield* matchAlert(alert, match, askOnce)).kind === 'matches'
  )
}
