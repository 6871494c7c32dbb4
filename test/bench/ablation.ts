import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { KindResult } from './compare-kind.ts'

/**
 * `node test/bench/ablation.ts`: what each mechanism of the plan is worth. Each is taken out of a copy of the sources by a change of
 * one line, and the copy is put through histories of both kinds. Prints the change of the mean lag against even polls, in
 * hundredths: above 0, the plan is worse without. `--constants` changes each constant to a smaller and a larger one instead, and
 * names the histories on which the mean changes by a hundredth or p99 by a quarter; `--only WORDS` takes those whose name holds
 * the words.
 */
const mechanisms: readonly (readonly [name: string, file: string, from: string, to: string])[] = [
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
  ['marks: their waits', 'marks/phase.ts', 'const waitStake = 0.05', 'const waitStake = 0'],
  ['marks closer than polls', 'marks/phase.ts', 'const waitShareMax = 0.6', 'const waitShareMax = 0'],
  ['guard: heaps', 'pace/guard.ts', 'return 1 / (1 + Math.max(0, won) / Math.max(1, heap))', 'return 0'],
  ['guard: units kept', 'pace/guard.ts', 'return Math.max(keptShareMin', 'return 0 * Math.max(keptShareMin'],
  ['guard: more kept while little is won', 'pace/guard.ts', 'keptShareMax, 1 /', 'keptShareMax * 0, 1 /'],
  ['guard: long waits', 'pace/guard.ts', 'const longShareMax = 0.005', 'const longShareMax = 1e9'],
]

/** Each constant beside a smaller and a larger one. */
const constants: readonly (readonly [
  file: string,
  name: string,
  value: string,
  others: readonly string[],
])[] = [
  ['schedule.ts', 'slowestFactor', '5', ['3', '8']],
  ['forecast/outlook.ts', 'eventMs', '3_000', ['1_500', '6_000']],
  ['forecast/outlook.ts', 'usualFactor', '2', ['1', '4']],
  ['forecast/outlook.ts', 'youngCredit', '[33, 5, 2, 3]', ['[16, 2.5, 1, 1.5]', '[66, 10, 4, 6]']],
  ['forecast/outlook.ts', 'creditKept', '0.8', ['0.6', '0.9']],
  ['forecast/outlook.ts', 'creditMax', '450', ['225', '900']],
  ['forecast/outlook.ts', 'dayCaution', '30', ['15', '60']],
  ['forecast/outlook.ts', 'memorySeconds', '[60, 420, 3_600]', ['[30, 210, 1_800]', '[120, 840, 7_200]']],
  ['forecast/profile.ts', 'halfLifeDays', '21', ['10', '42']],
  ['forecast/profile.ts', 'kinshipWithin', '0.8', ['0.6', '0.9']],
  ['forecast/profile.ts', 'kinshipAcross', '0.15', ['0.07', '0.3']],
  ['forecast/profile.ts', 'evidenceShare', '0.15', ['0.07', '0.3']],
  ['forecast/profile.ts', 'latelyMax', '5', ['3', '8']],
  ['forecast/profile.ts', 'latelyWeight', '0.5', ['0.25', '1']],
  ['forecast/shape.ts', 'ownInertia', '0.1', ['0.05', '0.2']],
  ['pace/decide.ts', 'snapTolerance', '0.15', ['0.07', '0.3']],
  ['pace/decide.ts', 'snapUnitsMin', '96', ['48', '192']],
  [
    'pace/family.ts',
    'priorWeights',
    '[0.4, 0.2, 0.25, 0.15]',
    ['[0.2, 0.27, 0.33, 0.2]', '[0.6, 0.13, 0.17, 0.1]'],
  ],
  ['pace/family.ts', 'rateMax', '0.1', ['0.05', '0.2']],
  ['pace/family.ts', 'ratePerDay', '10', ['5', '20']],
  ['pace/family.ts', 'sharedPart', '0.003', ['0.001', '0.01']],
  ['pace/family.ts', 'perDayShare', '0.2', ['0.1', '0.4']],
  ['pace/family.ts', 'rangeMax', '5', ['3', '10']],
  ['pace/guard.ts', 'wonAtFirst', '10', ['5', '20']],
  ['pace/guard.ts', 'allowedExcess', '0.03', ['0.015', '0.06']],
  ['pace/guard.ts', 'wonKept', '0.97', ['0.94', '0.985']],
  ['pace/guard.ts', 'wonPerAlertMax', '5', ['2.5', '10']],
  ['pace/guard.ts', 'unforeseenAlerts', '3_500', ['1_750', '7_000']],
  ['pace/guard.ts', 'keptShareMin', '0.78', ['0.65', '0.86']],
  ['pace/guard.ts', 'keptShareMax', '0.93', ['0.86', '0.97']],
  ['pace/guard.ts', 'longShareMax', '0.005', ['0.0025', '0.01']],
  ['pace/guard.ts', 'longIntervals', '1.9', ['1.5', '2.5']],
  ['pace/guard.ts', 'countsKept', '0.976', ['0.95', '0.99']],
  ['pace/guard.ts', 'heapKept', '0.95', ['0.9', '0.975']],
  ['pace/guard.ts', 'cautiousFloor', '1 / 3', ['0.25', '0.45']],
  ['pace/guard.ts', 'tightFloor', '0.5', ['0.35', '0.75']],
  ['pace/guard.ts', 'allowanceMin', '10', ['3', '30']],
  ['pace/family.ts', 'worthwhile', '0.9', ['0.8', '1']],
  ['pace/family.ts', 'scoreKept', '0.9', ['0.8', '0.95']],
  ['pace/few.ts', 'stepsTogether', '2', ['1', '4']],
  ['pace/few.ts', 'turns', '8', ['4', '16']],
  ['pace/few.ts', 'rounds', '3', ['2', '6']],
  ['pace/few.ts', 'rememberedShareMax', '0.01', ['0.005', '0.02']],
  ['pace/few.ts', 'rememberedIntervals', '1.9', ['1.5', '2.5']],
  ['marks/phase.ts', 'totalMax', '2_000', ['1_000', '4_000']],
  ['marks/phase.ts', 'gainToLock', '16', ['8', '32']],
  ['marks/phase.ts', 'gainToStayLocked', '4', ['2', '8']],
  ['marks/phase.ts', 'gainMax', '40', ['20', '80']],
  ['marks/phase.ts', 'waitShareMax', '0.6', ['0.4', '0.8']],
  ['marks/phase.ts', 'markShareMin', '0.7', ['0.5', '0.85']],
  ['marks/phase.ts', 'waitStake', '0.05', ['0.025', '0.1']],
  ['marks/phase.ts', 'waitChangeMax', '0.5', ['0.25', '1']],
  ['marks/phase.ts', 'waitGainMax', '5', ['3.5', '8']],
  ['marks/phase.ts', 'waitGainMin', '2', ['1', '3']],
  ['marks/pattern.ts', 'emptySlot', '0.3', ['0.15', '0.6']],
  ['marks/pattern.ts', 'pollsPerSlotMax', '40', ['20', '80']],
]

/** On some kinds seeds differ by more than most mechanisms are worth: these take four. */
const one = [101]
const two = [101, 102]
const four = [201, 202, 203, 204]

type Histories = readonly (readonly [
  name: string,
  column: string,
  unitsPerDay: number,
  seeds: readonly number[],
  days: number,
])[]

const histories: Histories = [
  ['market', 'market', 500, two, 28],
  ['bursty', 'alerts that foretell', 500, two, 28],
  ['tick60', 'minute', 500, two, 28],
  ['marks of five minutes', 'five minutes', 500, two, 28],
  ['marks of five minutes that drift 1.7 s a day', 'that drift', 500, two, 28],
  ['marks of five seconds', 'five seconds', 20_000, one, 10],
  ['a market of screens', 'screens', 500, four, 28],
  ['a two-hour window at a random hour', 'random hour', 500, four, 28],
  ['alerts that foretell others for an hour', 'for an hour', 500, two, 28],
  ['a session, and a batch of a hundred each night', 'batch each night', 500, four, 28],
  ['twenty thousand alerts within two hours, just after a session', 'giant', 200, four, 28],
]

const fewerUnits: Histories = [
  ['market', 'market, 10 units', 10, four, 28],
  ['mornings and evenings by turns', 'by turns, 10 units', 10, four, 28],
]

const program = `
import { compareKind } from './compare-kind.ts'
import { strangeKinds } from './strange.ts'
import { createTrace, scenarioNames } from './traces.ts'
import { heldOutKinds, tunedKinds } from './unfriendly.ts'
const kinds = { ...tunedKinds, ...heldOutKinds, ...strangeKinds }
const traces = Object.fromEntries(scenarioNames.map((name) => [name, (seed, days) => createTrace(name, seed, days).times]))
const result = JSON.parse(process.argv[2]).map(([name, , unitsPerDay, seeds, days]) => {
  return compareKind(kinds[name] ?? traces[name], unitsPerDay, seeds, days)
})
process.stdout.write(JSON.stringify(result))
`

const { values: options } = parseArgs({
  options: { constants: { type: 'boolean', default: false }, only: { type: 'string', default: '' } },
})
const root = join(import.meta.dirname, '../..')
const say = (cells: readonly string[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`)
if (options.constants) compareConstants()
else compareMechanisms()

function compareMechanisms(): void {
  say(['without', ...histories.map(([, column]) => column)])
  say(Array(histories.length + 1).fill('---'))
  const whole = measure(histories)
  say(['as it is', ...whole.map(({ mean }) => mean.toFixed(3))])
  for (const [name, ...change] of mechanisms) {
    if (!name.includes(options.only)) continue
    const means = measure(histories, change).map(({ mean }, at) => mean - (whole[at]?.mean ?? 0))
    // Below what two seeds of the same plan differ by, nothing is shown.
    say([name, ...means.map((each) => (Math.abs(each) < 0.005 ? '' : hundredths(each)))])
  }
}

function compareConstants(): void {
  const columns = [...histories, ...fewerUnits]
  const whole = measure(columns)
  const asItIs = columns.map(
    ([, column], at) => `${column} ${whole[at]?.mean.toFixed(3)}, ${whole[at]?.p99.toFixed(2)}`,
  )
  process.stdout.write(`Mean and p99 as it is: ${asItIs.join('; ')}\n`)
  say(['constant', 'changed to', 'what that does'])
  say(['---', '---', '---'])
  for (const [file, name, value, others] of constants) {
    if (!name.includes(options.only)) continue
    for (const other of others) {
      const line = `const ${name} =`
      const results = measure(columns, [file, `${line} ${value}`, `${line} ${other}`])
      const changes = columns.flatMap(([, column], at) => {
        const mean = (results[at]?.mean ?? 0) - (whole[at]?.mean ?? 0)
        const p99 = (results[at]?.p99 ?? 0) - (whole[at]?.p99 ?? 0)
        return [
          ...(Math.abs(mean) < 0.01 ? [] : [`${column} ${hundredths(mean)}`]),
          ...(Math.abs(p99) < 0.25 ? [] : [`${column} p99 ${hundredths(p99)}`]),
        ]
      })
      say([`${name} = ${value}`, other, changes.join(', ')])
    }
  }
}

function hundredths(change: number): string {
  return `${change > 0 ? '+' : '−'}${Math.abs(100 * change).toFixed(1)}`
}

function measure(
  columns: Histories,
  change?: readonly [file: string, from: string, to: string],
): KindResult[] {
  const copy = mkdtempSync(join(tmpdir(), 'ablation-'))
  try {
    for (const each of ['src', 'test/bench', 'package.json'])
      cpSync(join(root, each), join(copy, each), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    if (change) {
      const [file, from, to] = change
      const path = join(copy, 'src/schedule', file)
      const text = readFileSync(path, 'utf8')
      if (!text.includes(from)) throw new Error(`${file} does not hold "${from}"`)
      writeFileSync(path, text.replace(from, to))
    }
    writeFileSync(join(copy, 'test/bench/ablated.ts'), program)
    const printed = execFileSync(
      process.execPath,
      [join(copy, 'test/bench/ablated.ts'), JSON.stringify(columns)],
      {
        encoding: 'utf8',
      },
    )
    return JSON.parse(printed) as KindResult[]
  } finally {
    rmSync(copy, { recursive: true })
  }
}
