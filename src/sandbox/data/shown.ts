import type { Listing } from '../market.ts'
import type { Shown } from '../texts.ts'
import { lettersOf } from './company.ts'
import type { Scene } from './scene.ts'
import { sessionsOf } from './sessions.ts'
import { mean, rsi } from './technical.ts'

/** What an alert says of its instrument, as prices, board, indicators and letters show it at that time. */
export function shownOf(of: Listing, scene: Scene): Shown {
  const sessions = (count: number) => sessionsOf(of, scene.seed, scene.nowMs, count)
  return {
    last: () => sessions(1)[0]?.close ?? of.price,
    rsi: () => rsi(sessions(15).map(({ close }) => close)) || 50,
    volumeRatio: () => {
      const volumes = sessions(20).map(({ volume }) => volume)
      return (volumes.at(-1) ?? 0) / mean(volumes)
    },
    periodMonths: () => lettersOf(of, scene)[0]?.periodMonths ?? 12,
  }
}
