import { expect, it, vi } from 'vitest'
import { compare } from '../bench/compare.ts'
import { trueRate } from '../bench/policies.ts'
import type { ScenarioName } from '../bench/traces.ts'
import { computing } from '../support/computing.ts'

vi.setConfig(computing)

/**
 * What the plan promises, held on histories of seeds that it was not tuned on: half the lag for the same budget. Ten
 * weeks from an empty profile; the whole table is `npm run bench:polling`.
 */
const seed = 4_242

it.each<[ScenarioName, number, { even: number; truth: number; p99: number }]>([
  ['market', 500, { even: 0.52, truth: 1.1, p99: 1.45 }],
  ['halts', 500, { even: 0.52, truth: 1.15, p99: 1.45 }],
  ['bursty', 500, { even: 0.44, truth: 0.89, p99: 1.3 }],
  ['wrongprior', 500, { even: 0.62, truth: 1.15, p99: 2 }],
  ['flat', 500, { even: 1.06, truth: 1.06, p99: 1.3 }],
  ['tick60', 2_000, { even: 0.15, truth: 0.3, p99: 1 }],
  ['tick60', 500, { even: 0.21, truth: 0.48, p99: 1.1 }],
])('%s at %d units keeps its goals', (scenario, unitsPerDay, goals) => {
  // Minute marks are found within a day; four weeks of them say as much as ten.
  const result = compare(scenario, unitsPerDay, [seed], scenario === 'tick60' ? 28 : 70, { true: trueRate })
  expect(result.mean.ours / result.mean.even).toBeLessThanOrEqual(goals.even)
  expect(result.mean.ours / result.mean.true).toBeLessThanOrEqual(goals.truth)
  expect(result.ours.p99 / result.even.p99).toBeLessThanOrEqual(goals.p99)
  expect(result.unitsPerDayMax).toBeLessThanOrEqual(unitsPerDay)
  expect(result.unitsPerDayMin).toBeGreaterThanOrEqual(Math.min(unitsPerDay * 0.995, unitsPerDay - 1))
  expect(result.gapSecondsMax).toBeLessThanOrEqual(Math.min(900, (5 * 86_400) / unitsPerDay) * 1.02)
})
