import { type Comparison, compare } from './compare.ts'
import { compareKind } from './compare-kind.ts'
import { strangeKinds } from './strange.ts'
import { scenarioNames } from './traces.ts'
import { heldOutKinds, type Kind, tunedKinds } from './unfriendly.ts'

/**
 * `npm run bench:polling`: how long alerts wait until a poll sees them, ours beside other ways to spend the same units.
 * Deterministic; `--only friendly|unfriendly|budgets` prints one table (`--units N`: one budget of it), `--seed N` takes other histories.
 */
const argument = (name: string) => process.argv[process.argv.indexOf(name) + 1]
const only = process.argv.includes('--only') ? argument('--only') : undefined
const onlyUnits = process.argv.includes('--units') ? Number(argument('--units')) : undefined
const seed = process.argv.includes('--seed') ? Number(argument('--seed')) : 101

const say = (line: string) => process.stdout.write(`${line}\n`)
const seconds = (value: number) => value.toFixed(value < 100 ? 2 : 0)
const ratio = (value: number) => value.toFixed(2)
const row = (cells: readonly string[]) => say(`| ${cells.join(' | ')} |`)

if (only === undefined || only === 'friendly') friendly(70)
if (only === undefined || only === 'unfriendly') {
  unfriendly(tunedKinds, 500)
  unfriendly(heldOutKinds, 500)
  unfriendly(strangeKinds, 500)
}
if (only === undefined || only === 'budgets') budgets()

/** Ten weeks from an empty profile, at 2,000 units. */
function friendly(days: number): void {
  row([
    'alerts',
    'even',
    'market hours',
    'back-off',
    'ours',
    'knows the true rate',
    'ours/even',
    'p99 ours/even',
  ])
  row(Array(8).fill('---'))
  for (const name of scenarioNames) {
    const { mean, ours, even }: Comparison = compare(name, 2_000, seedsOf(name), days)
    row([
      name,
      ...[mean.even, mean.hours, mean.backOff, mean.ours, mean.true].map((value) => `${seconds(value)} s`),
      ratio(mean.ours / mean.even),
      ratio(ours.p99 / even.p99),
    ])
  }
}

/** Six weeks, of which the last five count; the range is that of the seeds. */
function unfriendly(kinds: Readonly<Record<string, Kind>>, unitsPerDay: number): void {
  say('')
  row(['alerts', 'mean ours/even', 'of each seed', 'p99 ours/even', 'longest wait, in even intervals'])
  row(Array(5).fill('---'))
  for (const [name, kind] of Object.entries(kinds)) {
    const { mean, means, p99, longest } = compareKind(kind, unitsPerDay, [seed, seed + 1], 42)
    row([
      name,
      ratio(mean),
      `${ratio(Math.min(...means))} to ${ratio(Math.max(...means))}`,
      ratio(p99),
      longest.toFixed(1),
    ])
  }
}

/** Five budgets; few polls say little, so small ones have more seeds, and large ones fewer days. The range is that of the seeds. */
function budgets(): void {
  const columns = [
    { units: 10, seeds: 6, days: 42 },
    { units: 100, seeds: 4, days: 42 },
    { units: 500, seeds: 2, days: 28 },
    { units: 2_000, seeds: 2, days: 28 },
    { units: 20_000, seeds: 2, days: 7 },
  ].filter(({ units }) => onlyUnits === undefined || units === onlyUnits)
  say('')
  row(['mean ours/even at', ...columns.map(({ units }) => String(units))])
  row(Array(columns.length + 1).fill('---'))
  for (const name of scenarioNames)
    row([
      name,
      ...columns.map(({ units, seeds, days }) => {
        const ratios = Array.from({ length: seeds }, (_, index) => {
          const { mean } = compare(name, units, [seed + index], days, {})
          return mean.ours / mean.even
        })
        const mean = ratios.reduce((sum, each) => sum + each, 0) / seeds
        return `${ratio(mean)} (${ratio(Math.min(...ratios))} to ${ratio(Math.max(...ratios))})`
      }),
    ])
}

/** Five alerts a day say little on their own. */
function seedsOf(name: string): number[] {
  return Array.from({ length: name === 'quiet' ? 4 : 1 }, (_, index) => seed + index)
}
