import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { meansOf, slopeOf } from './soak/slope.ts'

const minuteMs = 60_000

it('faults of every kind, one after the other, cost no alert', async () => {
  const args = ['--minutes', '0.1', '--every', '0.4', '--rate', '1200', '--json']
  // Ends with an error when the program ends with 1.
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, 'soak.ts'), ...args],
    { timeout: 150_000 },
  )
  const said = JSON.parse(stdout) as { fired: number; faults: number; missing: number }
  expect(said).toMatchObject({ missing: 0 })
  expect(said.faults).toBeGreaterThan(2)
  expect(said.fired).toBeGreaterThan(20)
}, 160_000)

it('the slope is that of the line, and certain to the degree of what is around it', () => {
  const line = (noise: (minute: number) => number) =>
    Array.from({ length: 60 }, (_, minute) => ({
      atMs: minute * minuteMs,
      value: 170 + 3 * (minute / 60) + noise(minute),
    }))
  const exact = slopeOf(line(() => 0))
  expect(exact.anHour).toBeCloseTo(3)
  expect(exact.to - exact.from).toBeCloseTo(0)
  const noisy = slopeOf(line((minute) => (minute % 2 === 0 ? 1 : -1)))
  expect(noisy.from).toBeLessThan(3)
  expect(noisy.to).toBeGreaterThan(3)
  expect(noisy.to - noisy.from).toBeLessThan(4)
  // Slow waves leave fewer independent points than a noise of the same size.
  const wave = slopeOf(line((minute) => Math.sin(minute / 4)))
  expect(wave.to - wave.from).toBeGreaterThan(2 * (noisy.to - noisy.from))
  expect(slopeOf(line(() => 0).slice(0, 3)).anHour).toBeNaN()
})

it('means are of whole stretches, at their middle', () => {
  const points = [1, 3, 5, 7, 100].map((value, index) => ({ atMs: index * 1_000, value }))
  expect(meansOf(points, 2_000)).toEqual([
    { atMs: 1_000, value: 2 },
    { atMs: 3_000, value: 6 },
  ])
})
