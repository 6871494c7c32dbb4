import { expect, it } from 'vitest'
import { unitsOfSource } from '../../src/config/accounts.ts'
import type { SourceConfig } from '../../src/config/schema.ts'
import { shareOf } from '../../src/poller/budget.ts'

const dayMs = 86_400_000
const minuteMs = 60_000
const paced = (every?: number) => ({ poll: { every } }) as SourceConfig

it.each([
  [60_000, 1_435],
  [45_000, 1_912],
  [300_000, 287],
])(
  'of an account that another source polls every %i ms, a source with a learned pace leaves it its polls until the reset',
  (every, fixedMin) => {
    const sharing = [paced(every), paced()]
    const share = (units: number, dayShare: number) => unitsOfSource(paced(), sharing, units, dayShare)
    let unitsLeft = 2_000
    let [fixed, learned] = [0, 0]
    let [nextFixedMs, nextLearnedMs] = [0, 0]
    for (let nowMs = 0; nowMs < dayMs && unitsLeft > 0; nowMs += minuteMs / 4) {
      if (nowMs >= nextFixedMs) {
        fixed += 1
        unitsLeft -= 1
        nextFixedMs += every
      }
      // As evenly as what it may use allows.
      if (nowMs >= nextLearnedMs && unitsLeft > 0) {
        learned += 1
        unitsLeft -= 1
        const day = { key: '', startMs: 0, endMs: dayMs }
        const own = shareOf({ unitsPerDay: 2_000, unitsLeft, day }, nowMs, share)
        nextLearnedMs = nowMs + (dayMs - nowMs) / Math.max(1, own.unitsLeft)
      }
    }
    expect(fixed).toBeGreaterThan(fixedMin)
    expect(fixed + learned).toBeGreaterThan(1_900)
  },
)
