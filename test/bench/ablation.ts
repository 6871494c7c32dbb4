import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * `node test/bench/ablation.ts`: what each mechanism of the plan is worth. Each is taken out of a copy of the sources by a change of
 * one line, and the copy is put through histories of both kinds. Prints the change of the mean lag against even polls, in
 * hundredths: above 0, the plan is worse without.
 */
const mechanisms: readonly (readonly [name: string, file: string, from: string, to: string])[] = [
  ['as it is', 'learn.ts', 'const scoredDays = 14', 'const scoredDays = 14'],
  ['batches as one event', 'forecast/outlook.ts', 'const eventMs = 3_000', 'const eventMs = 1'],
  ["today's level", 'forecast/outlook.ts', 'const dayCaution = 30', 'const dayCaution = 1e9'],
  ['credit of the memories', 'forecast/outlook.ts', 'if (total <= 0) return', 'if (total > -1) return'],
  ['the last days', 'forecast/profile.ts', 'const latelyWeight = 0.5', 'const latelyWeight = 0'],
  ['likeness of weekdays', 'forecast/profile.ts', 'const evidenceShare = 0.15', 'const evidenceShare = 0'],
  [
    "a cut's own verdict",
    'forecast/shape.ts',
    'const ownConcentration = 0.1',
    'const ownConcentration = 1e-9',
  ],
  ['policy: even', 'pace/family.ts', '[0.4, 0.2, 0.25, 0.15]', '[1e-9, 0.35, 0.4, 0.25]'],
  ['policy: profile', 'pace/family.ts', '[0.4, 0.2, 0.25, 0.15]', '[0.4, 1e-9, 0.4, 0.2]'],
  ['policy: profile and recent', 'pace/family.ts', '[0.4, 0.2, 0.25, 0.15]', '[0.4, 0.4, 1e-9, 0.2]'],
  ['policy: mean and recent', 'pace/family.ts', '[0.4, 0.2, 0.25, 0.15]', '[0.4, 0.3, 0.3, 1e-9]'],
  ['weights that learn', 'pace/family.ts', 'const rateMax = 0.1', 'const rateMax = 0'],
  ['fixed share', 'pace/family.ts', 'const sharedPart = 0.003', 'const sharedPart = 1e-12'],
  ['polls of a clock', 'pace/decide.ts', 'const snapTolerance = 0.15', 'const snapTolerance = 0'],
  ['marks', 'marks/pattern.ts', 'if (!isProven(phase.secondGain, isLocked))', 'if (phase)'],
  ['marks of some minutes', 'marks/phase.ts', 'if (!isProven(phase.minuteGain, isLocked))', 'if (phase)'],
  ['marks: blur', 'marks/pattern.ts', 'Math.exp(0.1 * blur)', 'Math.exp(0 * blur)'],
  ['marks closer than polls', 'marks/phase.ts', 'const waitShareMax = 0.6', 'const waitShareMax = 0'],
  ['guard: heaps', 'pace/guard.ts', 'const affordable = 1 /', 'const affordable = 0 /'],
  ['guard: units kept', 'pace/guard.ts', 'return Math.max(keptShareMin', 'return 0 * Math.max(keptShareMin'],
  ['guard: more kept while little is won', 'pace/guard.ts', 'keptShareMax, 1 /', 'keptShareMax * 0, 1 /'],
  ['guard: long waits', 'pace/guard.ts', 'const longShareMax = 0.005', 'const longShareMax = 1e9'],
]

/** On some kinds seeds differ by more than most mechanisms are worth: these take four. */
const one = [101]
const two = [101, 102]
const four = [201, 202, 203, 204]

const histories: readonly (readonly [
  name: string,
  column: string,
  unitsPerDay: number,
  seeds: readonly number[],
  days: number,
])[] = [
  ['market', 'market', 500, two, 28],
  ['bursty', 'alerts that foretell', 500, two, 28],
  ['tick60', 'minute', 500, two, 28],
  ['marks of five minutes', 'five minutes', 500, two, 28],
  ['marks of five seconds', 'five seconds', 20_000, one, 10],
  ['a market of screens', 'screens', 500, four, 28],
  ['a two-hour window at a random hour', 'random hour', 500, four, 28],
  ['alerts that foretell others for an hour', 'for an hour', 500, two, 28],
  ['a session, and a batch of a hundred each night', 'batch each night', 500, four, 28],
  ['twenty thousand alerts within two hours, just after a session', 'giant', 200, four, 28],
]

const program = `
import { compareKind } from './compare-kind.ts'
import { strangeKinds } from './strange.ts'
import { createTrace, scenarioNames } from './traces.ts'
import { heldOutKinds, tunedKinds } from './unfriendly.ts'
const kinds = { ...tunedKinds, ...heldOutKinds, ...strangeKinds }
const traces = Object.fromEntries(scenarioNames.map((name) => [name, (seed, days) => createTrace(name, seed, days).times]))
const result = JSON.parse(process.argv[2]).map(([name, , unitsPerDay, seeds, days]) => {
  return compareKind(kinds[name] ?? traces[name], unitsPerDay, seeds, days).mean
})
process.stdout.write(JSON.stringify(result))
`

const root = join(import.meta.dirname, '../..')
const only = process.argv[2]
const say = (cells: readonly string[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`)
say(['without', ...histories.map(([, column]) => column)])
say(Array(histories.length + 1).fill('---'))
let whole: readonly number[] | undefined
for (const [name, file, from, to] of mechanisms) {
  if (only !== undefined && whole && !name.includes(only)) continue
  const means = measure(file, from, to)
  const base = whole
  say([name, ...means.map((mean, at) => (base ? hundredths(mean - (base[at] ?? 0)) : mean.toFixed(3)))])
  whole ??= means
}

/** Below what two seeds of the same plan differ by, nothing is shown. */
function hundredths(change: number): string {
  return Math.abs(change) < 0.005 ? '' : `${change > 0 ? '+' : '−'}${Math.abs(100 * change).toFixed(1)}`
}

function measure(file: string, from: string, to: string): number[] {
  const copy = mkdtempSync(join(tmpdir(), 'ablation-'))
  try {
    for (const each of ['src', 'test/bench', 'package.json'])
      cpSync(join(root, each), join(copy, each), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    const path = join(copy, 'src/schedule', file)
    const text = readFileSync(path, 'utf8')
    if (!text.includes(from)) throw new Error(`${file} does not hold "${from}"`)
    writeFileSync(path, text.replace(from, to))
    writeFileSync(join(copy, 'test/bench/ablated.ts'), program)
    const printed = execFileSync(
      process.execPath,
      [join(copy, 'test/bench/ablated.ts'), JSON.stringify(histories)],
      {
        encoding: 'utf8',
      },
    )
    return JSON.parse(printed) as number[]
  } finally {
    rmSync(copy, { recursive: true })
  }
}
