import type { Match } from './match.ts'

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
