import { createSchedule } from '../../src/schedule/create.ts'
import { evenLags, simulate, summarizeLags } from '../../src/schedule/simulate.ts'
import { datedOtherwise, simulateAnnounced } from './announced.ts'
import { benchOptions, type Comparison, compare } from './compare.ts'
import { compareKind } from './compare-kind.ts'
import { hostileKinds } from './hostile.ts'
import { strangeKinds } from './strange.ts'
import { createTrace, scenarioNames } from './traces.ts'
import { heldOutKinds, type Kind, tunedKinds } from './unfriendly.ts'

/**
 * `npm run bench:polling`: how long alerts wait until a poll sees them, ours beside other ways to spend the same units.
 * Deterministic; `--only friendly|unfriendly|hostile|budgets|large|announced` prints one table, `--units N` one
 * budget of it, `--kind WORDS` only kinds whose name has these; `--seeds N` takes N seeds, `--seed N` other histories.
 */
const argument = (name: string) => process.argv[process.argv.indexOf(name) + 1]
const only = process.argv.includes('--only') ? argument('--only') : undefined
const onlyUnits = process.argv.includes('--units') ? Number(argument('--units')) : undefined
const seed = process.argv.includes('--seed') ? Number(argument('--seed')) : 101
const onlySeeds = process.argv.includes('--seeds') ? Number(argument('--seeds')) : undefined
const onlyKind = process.argv.includes('--kind') ? argument('--kind') : undefined

const say = (line: string) => process.stdout.write(`${line}\n`)
const seconds = (value: number) => value.toFixed(value < 100 ? 2 : 0)
const ratio = (value: number) => value.toFixed(2)
const row = (cells: readonly string[]) => say(`| ${cells.join(' | ')} |`)

if (only === undefined || only === 'friendly') friendly(70)
if (only === undefined || only === 'unfriendly') {
  const scenarios = scenarioNames.map((name): [string, Kind] => [
    name,
    (each, days) => createTrace(name, each, days).times,
  ])
  for (const kinds of [Object.fromEntries(scenarios), tunedKinds, heldOutKinds, strangeKinds])
    unfriendly(kinds, onlyUnits ?? 500, 42)
}
if (only === undefined || only === 'hostile') {
  const days = new Map([
    [200, 42],
    [2_000, 42],
    [20_000, 15],
  ])
  for (const [units, span] of days)
    if (onlyUnits === undefined || units === onlyUnits) unfriendly(hostileKinds, units, span)
}
if (only === undefined || only === 'budgets') budgets()
if (only === undefined || only === 'large') {
  large(20_000, 10)
  large(200_000, 3)
}
if (only === undefined || only === 'announced') announced()

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

/** What comes from the second week on counts; the range is that of the seeds. */
function unfriendly(kinds: Readonly<Record<string, Kind>>, unitsPerDay: number, days: number): void {
  say(`\n${unitsPerDay} units, ${days} days`)
  row(['alerts', 'mean ours/even', 'of each seed', 'p99 ours/even', 'longest wait, in even intervals'])
  row(Array(5).fill('---'))
  for (const [name, kind] of Object.entries(kinds)) {
    if (onlyKind !== undefined && !name.includes(onlyKind)) continue
    const seeds = Array.from({ length: onlySeeds ?? 2 }, (_, index) => seed + index)
    const { mean, means, p99, longest } = compareKind(kind, unitsPerDay, seeds, days)
    row([
      name,
      ratio(mean),
      `${ratio(Math.min(...means))} to ${ratio(Math.max(...means))}`,
      ratio(p99),
      longest.toFixed(1),
    ])
  }
}

/** Few polls say little, so small ones have more seeds, and large ones fewer days. The range is that of the seeds. */
function budgets(): void {
  const columns = [
    { units: 1, seeds: 6, days: 42 },
    { units: 2, seeds: 6, days: 42 },
    { units: 10, seeds: 6, days: 42 },
    { units: 50, seeds: 4, days: 42 },
    { units: 100, seeds: 4, days: 42 },
    { units: 500, seeds: 2, days: 28 },
    { units: 2_000, seeds: 2, days: 28 },
    { units: 20_000, seeds: 2, days: 14 },
    { units: 200_000, seeds: 1, days: 4 },
  ].filter(({ units }) => onlyUnits === undefined || units === onlyUnits)
  say('')
  row(['mean ours/even at', ...columns.map(({ units }) => String(units))])
  row(Array(columns.length + 1).fill('---'))
  for (const name of scenarioNames.filter((each) => each.includes(onlyKind ?? '')))
    row([
      name,
      ...columns.map(({ units, seeds, days }) => {
        const ratios = Array.from({ length: onlySeeds ?? seeds }, (_, index) => {
          const { mean } = compare(name, units, [seed + index], days, {})
          return mean.ours / mean.even
        })
        const mean = ratios.reduce((sum, each) => sum + each, 0) / ratios.length
        return `${ratio(mean)} (${ratio(Math.min(...ratios))} to ${ratio(Math.max(...ratios))})`
      }),
    ])
}

/** Budgets that need a decision every few seconds, from an empty profile; the first day does not count. */
function large(unitsPerDay: number, days: number): void {
  if (onlyUnits !== undefined && onlyUnits !== unitsPerDay) return
  say(`\n${unitsPerDay} units, ${days} days`)
  row(['alerts', 'mean ours/even', 'p99 ours/even', 'longest wait, in even intervals', 'CPU of a decision'])
  row(Array(5).fill('---'))
  const options = benchOptions(unitsPerDay)
  for (const name of scenarioNames.filter((each) => each.includes(onlyKind ?? ''))) {
    const { times, startMs } = createTrace(name, seed, days)
    const begun = process.cpuUsage().user
    const { lagsMs, polls } = simulate(times, createSchedule(options, undefined), options)
    const microseconds = (process.cpuUsage().user - begun) / polls.length
    const first = times.findIndex((at) => at >= startMs + 86_400_000)
    const [ours, even] = [lagsMs, evenLags(times, options)].map((lags) => summarizeLags(lags.slice(first)))
    if (!ours || !even) continue
    row([
      name,
      ratio(ours.mean / even.mean),
      ratio(ours.p99 / even.p99),
      ((ours.max * unitsPerDay) / 86_400).toFixed(1),
      `${microseconds.toFixed(0)} us`,
    ])
  }
}

/** Five alerts a day say little on their own. */
function seedsOf(name: string): number[] {
  return Array.from({ length: name === 'quiet' ? 4 : 1 }, (_, index) => seed + index)
}

/** Forty rules of the sandbox, eight days at 2,000 units of which the first does not count, twelve seeds; pages of rules are paid for. */
function announced(): void {
  say('')
  row(['announced', 'mean ours/even', 'of each seed', 'p99 ours/even', 'pages of rules'])
  row(Array(5).fill('---'))
  const kinds = (['true', 'unread', 'wrong', 'noisy', 'null'] as const).map((how) => ({ how, name: how }))
  const dated = Object.entries(datedOtherwise).map(([name, datedMs]) => ({
    how: 'true' as const,
    name,
    datedMs,
  }))
  for (const { name, ...kind } of [...kinds, ...dated]) {
    const results = Array.from({ length: onlySeeds ?? 12 }, (_, index) =>
      simulateAnnounced({ ...kind, seed: 300 + index, days: 8, unitsPerDay: 2_000 }),
    )
    const means = results.map(({ mean }) => mean)
    const average = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length
    row([
      name,
      average(means).toFixed(3),
      `${ratio(Math.min(...means))} to ${ratio(Math.max(...means))}`,
      ratio(average(results.map(({ p99 }) => p99))),
      average(results.map(({ readings }) => readings)).toFixed(0),
    ])
  }
}
