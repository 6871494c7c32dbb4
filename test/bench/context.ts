import { randomUUID } from 'node:crypto'
import { parseRow } from '../../src/alert/alert.ts'
import type { AlertContext, ContextName } from '../../src/alert/context.ts'
import { createSourceContext } from '../../src/context/source-context.ts'
import { createSpending } from '../../src/context/spending.ts'
import type { FeedClient } from '../../src/feed/client.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { summarizeLags } from '../../src/schedule/simulate.ts'
import type { ContextCache } from '../../src/store/context-cache.ts'
import type { Ledger } from '../../src/store/ledger/ledger.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { benchOptions } from './compare.ts'
import { createRandom, type Random } from './random.ts'
import { createTrace, type ScenarioName } from './traces.ts'

/**
 *   node test/bench/context.ts [--days 28] [--seeds 2] [--units 2000] [--share 0.2]
 *
 * How much later polls find alerts when price and chart of each are bought with units of the same day: the live planner, loader
 * and spending rules through a simulated clock, once without and once with context, on the same alerts.
 */
const option = (name: string, otherwise: number) => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}
const [days, seeds] = [option('days', 28), option('seeds', 2)]
const [unitsPerDay, unitsShare] = [option('units', 2_000), option('share', 0.2)]
const names: readonly ContextName[] = ['price', 'chart']
const markets = [40, 300]
const say = (line: string) => process.stdout.write(`${line}\n`)
const row = (cells: readonly string[]) => say(`| ${cells.join(' | ')} |`)

say(
  `${days} days of ${unitsPerDay} units from an empty profile, ${seeds} seeds a line, price and chart of each alert, unitsShare ${unitsShare}.`,
)
say(
  'A poll costs a unit and takes no time, nor does a call; each alert is of one of so many instruments, all',
)
say('as likely, or the first ones more (Zipf). Lag: from the firing of an alert to the poll that finds it.')
say('')
row(['alerts', 'a day', 'of', 'lag without', 'with', 'ratio', 'price', 'chart', 'units a day, most'])
row(Array(9).fill('---'))
for (const scenario of ['market', 'bursty', 'flat'] as const) await scenarioLines(scenario)

async function scenarioLines(scenario: ScenarioName): Promise<void> {
  const kinds = markets.flatMap((size) => [0, 1].map((skew) => ({ size, skew, runs: [] as Run[] })))
  const without: Run[] = []
  for (let seed = 101; seed < 101 + seeds; seed += 1) {
    const { times } = createTrace(scenario, seed, days)
    without.push(await run(times))
    // Together: each waits for the loader, which gathers what comes within 10 ms.
    const ran = kinds.map(async ({ size, skew, runs }) =>
      runs.push(await run(times, instrumentsOf(times.length, size, skew, createRandom(seed)))),
    )
    await Promise.all(ran)
  }
  for (const { size, skew, runs } of kinds) {
    const alerts = sumOf(runs, (each) => each.alerts)
    const mean = (of: readonly Run[]) => sumOf(of, (each) => each.meanSeconds * each.alerts) / alerts
    const share = (name: ContextName) =>
      `${((100 * sumOf(runs, ({ found }) => found.get(name) ?? 0)) / alerts).toFixed(0)} %`
    row([
      ...[scenario, (alerts / days / seeds).toFixed(0), `${size}${skew > 0 ? ', Zipf' : ''}`],
      ...[`${mean(without).toFixed(2)} s`, `${mean(runs).toFixed(2)} s`],
      ...[(mean(runs) / mean(without)).toFixed(3), share('price'), share('chart')],
      String(Math.max(...runs.map((each) => each.contextUnitsMax))),
    ])
  }
}

function sumOf(runs: readonly Run[], value: (run: Run) => number): number {
  return runs.reduce((sum, each) => sum + value(each), 0)
}

interface Run {
  readonly alerts: number
  readonly meanSeconds: number
  /** For how many alerts. */
  readonly found: ReadonlyMap<ContextName, number>
  readonly contextUnitsMax: number
}

/** As `simulate`, and what the alerts of a poll buy is gone from the day before the next poll is planned. */
async function run(times: readonly number[], of?: readonly number[]): Promise<Run> {
  const options = benchOptions(unitsPerDay)
  const schedule = createSchedule(options, undefined)
  const lagsMs = new Float64Array(times.length)
  const lastEndMs = budgetDay(times.at(-1) ?? 0, options).endMs
  const day = { ...budgetDay(times[0] ?? 0, options), used: 0, context: 0 }
  const world = { nowMs: day.startMs, day }
  const context = of && contextIn(world)
  const found = new Map<ContextName, number>()
  let [seen, contextUnitsMax] = [0, 0]
  for (;;) {
    const budget = { unitsPerDay, unitsLeft: unitsPerDay - day.used, day: { ...day } }
    world.nowMs = Math.ceil(Math.max(world.nowMs, schedule.next(world.nowMs, budget).atMs))
    if (world.nowMs >= lastEndMs && seen === times.length) break
    if (world.nowMs >= day.endMs) Object.assign(day, budgetDay(world.nowMs, options), { used: 0, context: 0 })
    const from = seen
    for (; seen < times.length && (times[seen] ?? 0) <= world.nowMs; seen += 1)
      lagsMs[seen] = world.nowMs - (times[seen] ?? 0)
    schedule.observe({
      ...{ atMs: world.nowMs, ok: true, firedAtMs: times.slice(from, seen), pages: 1, pagesLeft: 'none' },
    })
    day.used += 1
    if (context && seen > from)
      for (const { parts } of await Promise.all(of.slice(from, seen).map((each) => context(each))))
        for (const name of names) if (parts[name]) found.set(name, (found.get(name) ?? 0) + 1)
    contextUnitsMax = Math.max(contextUnitsMax, day.context)
  }
  return { alerts: times.length, meanSeconds: summarizeLags(lagsMs).mean, found, contextUnitsMax }
}

interface World {
  nowMs: number
  readonly day: ReturnType<typeof budgetDay> & { used: number; context: number }
}

/** The real loader and spending rules, with ledger, cache and API in memory. */
function contextIn(world: World): (instrument: number) => Promise<AlertContext> {
  const clock = {
    now: () => world.nowMs,
    monotonicMs: () => world.nowMs,
    sleep: () => new Promise<void>((resolve) => setImmediate(resolve)),
  }
  const metrics = createMetrics({ version: 'bench', node: 'bench' })
  const ledger: Pick<Ledger, 'reserve' | 'ended' | 'hold' | 'apiDay'> = {
    async reserve({ cost, leaveUnits = 0, purposeUnitsMax = Number.POSITIVE_INFINITY }) {
      const { day } = world
      const ofPurpose = day.context + cost > purposeUnitsMax
      if (ofPurpose || day.used + cost + leaveUnits > unitsPerDay) {
        const refused = { ok: false, limit: 'budget', held: false, retryAtMs: day.endMs } as const
        return { ...refused, unitsUsed: day.used, ...(ofPurpose ? { ofPurpose } : {}) }
      }
      day.used += cost
      day.context += cost
      return { ok: true, request: '', unitsUsed: day.used, unitsLeft: unitsPerDay - day.used }
    },
    ended() {},
    hold: async () => 0,
    apiDay: async () => undefined,
  }
  const spending = createSpending({
    ...{ source: 'bench', ledger, unitsPerDay, unitsShare, clock, metrics },
    grants: { load: async () => undefined, save: async () => {} } as never,
    budgetDay: (nowMs) => budgetDay(nowMs, benchOptions(unitsPerDay)),
    polls: () => [{ share: benchOptions(unitsPerDay).floor }],
    onBudgetRefused: async () => {},
  })
  const cache = cacheIn(world)
  const source = createSourceContext({
    ...{ source: 'bench', feed: marketApi(), spending, clock, metrics, names: {}, deadlineMs: 2_000 },
    ...{ closing: new AbortController().signal, log: createLogger({ level: 'silent' }) },
    cacheNow: () => ({ accountHash: 'bench', cache }),
    isForeign: async () => false,
  })
  return (instrument) => {
    const parsed = parseRow('bench', { id: instrument + 1, ...instrumentAt(instrument) })
    if (!parsed.ok) throw new Error(parsed.reason)
    const options = { seenAtMs: world.nowMs, mayBuy: true, signal: new AbortController().signal }
    return source.find(parsed.alert, names, options)
  }
}

function instrumentAt(index: number) {
  return { symbol: `n${index}x`, slug: `stock-${index}x` }
}

/** As Redis keeps it, without bounds. */
function cacheIn(world: World): ContextCache {
  const values = new Map<string, { atMs: number; value: unknown }>()
  const locks = new Map<string, string>()
  let burst = { units: 0, untilMs: 0 }
  return {
    read: async (fields) => fields.map((field) => values.get(field)),
    store: async (entries, atMs) => {
      for (const { field, value } of entries) values.set(field, { atMs, value })
    },
    async lock(what) {
      if (locks.has(what)) return undefined
      const token = randomUUID()
      locks.set(what, token)
      return token
    },
    unlock: async (what) => void locks.delete(what),
    async take(units, { unitsMax, forMs }) {
      if (world.nowMs >= burst.untilMs) burst = { units: 0, untilMs: world.nowMs + forMs }
      if (burst.units + units > unitsMax) return false
      burst.units += units
      return true
    },
    async giveBack(units) {
      burst.units -= units
    },
  }
}

/** Pages of the board, searches of it, and histories. */
function marketApi(): Pick<FeedClient, 'askExactly' | 'tokenTrouble' | 'tokenFingerprint'> {
  const size = Math.max(...markets)
  const askExactly = async (path: string, { query = {}, instrument }: Asked) => {
    if (path !== '/api/v1/board') return { data: { slug: instrument, unit: 'rial', points: [] } }
    const all = Array.from({ length: size }, (_, index) => ({ ...instrumentAt(index), last: 1_000 }))
    const matching = all.filter(({ symbol }) => symbol.includes(query.search ?? ''))
    const page = query.page ?? 1
    const lastPage = Math.max(1, Math.ceil(matching.length / 100))
    return { rows: matching.slice((page - 1) * 100, page * 100), lastPage }
  }
  return { askExactly: askExactly as never, tokenTrouble: () => undefined, tokenFingerprint: () => '' }
}

interface Asked {
  readonly instrument?: string
  readonly query?: { readonly search?: string; readonly page?: number }
}

function instrumentsOf(count: number, size: number, skew: number, random: Random): number[] {
  let total = 0
  const upTo = Array.from({ length: size }, (_, index) => {
    total += 1 / (index + 1) ** skew
    return total
  })
  return Array.from({ length: count }, () => {
    const drawn = random.next() * total
    return upTo.findIndex((end) => drawn < end)
  })
}
