import { type Comparison, compare } from './compare.ts'
import { scenarioNames } from './traces.ts'

/**
 * `npm run bench:polling`: how long alerts wait until a poll sees them, ours beside other ways to spend the same units.
 * Deterministic; `--quick` takes one budget, `--seed N` other histories.
 */
const quick = process.argv.includes('--quick')
const seedAt = process.argv.indexOf('--seed')
const seed = seedAt < 0 ? 101 : Number(process.argv[seedAt + 1])
const budgets = quick ? [2_000] : [500, 1_000, 2_000, 5_000, 20_000]
const days = 70

const say = (line: string) => process.stdout.write(`${line}\n`)
say(
  `Ten weeks (${days} days) of synthetic alerts, seed ${seed} (quiet: eight seeds pooled), Tehran time, one unit a poll,`,
)
say(
  'calls that take no time, 1 s to 15 min between polls. Ours starts from an empty profile. Mean lag in seconds:',
)
say('even: evenly spaced; hours: 60 % of the units in market hours; back-off: half on a hit, x1.5 on a miss;')
say(
  'seasonal and true: polls along the square root of the weekly, and of the very true rate, known beforehand.',
)
say('')
const headings =
  'scenario    units    even   hours  back-off     ours  seasonal    true | /even  /true  p99/even  worst gap  units a day'
say(headings)
for (const unitsPerDay of budgets)
  for (const scenario of scenarioNames) {
    const seeds = scenario === 'quiet' ? Array.from({ length: 8 }, (_, index) => seed + index) : [seed]
    say(row(compare(scenario, unitsPerDay, seeds, days)))
  }

function row(result: Comparison): string {
  const { mean, ours, even } = result
  const seconds = (value: number, width: number) => value.toFixed(value < 100 ? 2 : 0).padStart(width)
  const ratio = (value: number, width: number) => value.toFixed(3).padStart(width)
  return [
    result.scenario.padEnd(10),
    String(result.unitsPerDay).padStart(7),
    seconds(mean.even, 8),
    seconds(mean.hours, 8),
    seconds(mean.backOff, 10),
    seconds(mean.ours, 9),
    seconds(mean.seasonal, 10),
    seconds(mean.true, 8),
    ' |',
    ratio(mean.ours / mean.even, 6),
    ratio(mean.ours / mean.true, 7),
    ratio(ours.p99 / even.p99, 10),
    `${result.gapSecondsMax.toFixed(0)} s`.padStart(11),
    `${result.unitsPerDayMin}..${result.unitsPerDayMax}`.padStart(14),
  ].join('')
}
