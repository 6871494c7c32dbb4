import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { contextUnitsMax } from '../../src/alert/context.ts'
import { readLearned } from '../../src/app/source/known.ts'
import { planCommand } from '../../src/cli/plan/plan.ts'
import { targetByTrace } from '../../src/cli/plan/target.ts'
import { UserError } from '../../src/lib/errors.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { simulate, summarizeLags } from '../../src/schedule/simulate.ts'
import { createGrantStore } from '../../src/store/ledger/grant.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { createScheduleState } from '../../src/store/source/schedule-state.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { benchOptions } from '../bench/compare.ts'
import { createTrace } from '../bench/traces.ts'
import { run } from '../support/cli.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()

const config = `
sources:
  main:
    baseUrl: https://api.example.com
    token: CANARY
    budget: { unitsPerDay: 1000 }
    poll: { minInterval: 5s, maxInterval: 10m }
sinks:
  hook: { type: webhook, url: "https://hooks.example.com/a" }
routes:
  - sinks: [hook]
`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'alert-bridge-plan-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const iso = (times: readonly number[]) => times.map((at) => `${new Date(at).toISOString()}\n`).join('')
const market = createTrace('market', 12, 7).times

/** The sentence that the command ends with. */
async function complaint(...args: string[]): Promise<string> {
  const { thrown, out } = await run(planCommand(), ...args)
  expect(thrown).toBeInstanceOf(UserError)
  expect(out).toBe('')
  return (thrown as UserError).message
}

describe('plan --trace', () => {
  it('prints polls, units and lags in seconds, and writes a poll a line', async () => {
    const out = join(folder, 'polls.txt')
    const trace = file('trace.txt', iso(market))
    const printed = await run(
      planCommand(),
      '--trace',
      trace,
      '--units-per-day',
      '500',
      '--polls',
      out,
      '--json',
    )
    expect(printed.thrown).toBeUndefined()
    const answer = JSON.parse(printed.out)
    const polls = readFileSync(out, 'utf8')
      .trim()
      .split('\n')
      .map((line) => Date.parse(line))
    expect(Object.keys(answer)).toEqual(['polls', 'unitsPerDayMax', 'lag', 'fixed'])
    expect(Object.keys(answer.lag)).toEqual(['mean', 'p50', 'p95', 'p99', 'max'])
    expect(polls).toHaveLength(answer.polls)
    expect(answer.unitsPerDayMax).toBe(500)
    const lags = market.map((at) => (polls.find((poll) => poll >= at) ?? Number.NaN) - at)
    const mean = lags.reduce((sum, lag) => sum + lag, 0) / lags.length / 1_000
    expect(answer.lag.mean).toBeCloseTo(mean, 2)
    expect(answer.lag.max).toBeCloseTo(Math.max(...lags) / 1_000, 2)
    expect(answer.fixed.mean).toBeGreaterThan(82)
    expect(answer.fixed.mean).toBeLessThan(91)
    expect(answer.lag.mean).toBeLessThan(answer.fixed.mean)
  })

  it('says the same in words without --json', async () => {
    const trace = file('trace.txt', iso(market))
    const { out } = await run(planCommand(), '--trace', trace, '--units-per-day', '500')
    expect(out).toContain(`${market.length} alerts, 3500 polls, at most 500 of 500 units a day`)
    expect(out).toMatch(/evenly spaced +\d/)
    expect(out).toMatch(/The mean delay is \d+ % of that of evenly spaced polls/)
  })

  it('keeps the intervals and the units of a config', async () => {
    const out = join(folder, 'polls.txt')
    const trace = file('trace.txt', iso(market))
    const args = ['--trace', trace, '--config', file('config.yaml', config), '--polls', out, '--json']
    const answer = JSON.parse((await run(planCommand(), ...args)).out)
    const polls = readFileSync(out, 'utf8')
      .trim()
      .split('\n')
      .map((line) => Date.parse(line))
    const gaps = polls.slice(1).map((at, index) => at - (polls[index] ?? 0))
    expect(answer.unitsPerDayMax).toBe(1_000)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5_000)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(600_000)
  })

  it('counts budget days in the zone that is asked for', async () => {
    const out = join(folder, 'polls.txt')
    const trace = file('trace.txt', '2024-03-10T20:00:00Z\n')
    const args = [
      '--trace',
      trace,
      '--units-per-day',
      '100',
      '--time-zone',
      'America/New_York',
      '--polls',
      out,
    ]
    await run(planCommand(), ...args)
    const polls = readFileSync(out, 'utf8').trim().split('\n')
    expect(polls[0]).toBe('2024-03-10T05:00:00.000Z')
    expect(polls).toHaveLength(100)
    // The day on which clocks go forward has 23 hours.
    expect(Date.parse(polls.at(-1) ?? '')).toBeLessThan(Date.parse('2024-03-11T04:00:00Z'))
  })

  it('takes times with any offset, and without one on the clock of the zone', async () => {
    const trace = file(
      'trace.txt',
      '2024-01-06T09:00:00+0330\n2024-01-06 09:00:01\r\n\n2024-01-06T05:30:02Z\n',
    )
    const printed = await run(planCommand(), '--trace', trace, '--units-per-day', '100', '--json')
    expect(JSON.parse(printed.out).polls).toBe(100)
  })

  it('takes local times through the hour that comes twice in autumn in the order of the file', async () => {
    const out = join(folder, 'polls.txt')
    const hour = ['01:50', '01:10', '01:40', '02:10'].map((time) => `2024-11-03T${time}:00\n`)
    const trace = file('trace.txt', hour.join(''))
    const zone = ['--time-zone', 'America/New_York', '--polls', out, '--json']
    const printed = await run(planCommand(), '--trace', trace, '--units-per-day', '100', ...zone)
    expect(printed.thrown).toBeUndefined()
    // The day has 25 hours.
    const polls = readFileSync(out, 'utf8').trim().split('\n')
    expect(Date.parse(polls.at(-1) ?? '')).toBeGreaterThan(Date.parse('2024-11-04T04:00:00Z'))
  })

  it.each([
    ['no date', '2024-01-06T09:00:00Z\nyesterday\n', /trace\.txt:2: "yesterday" is no ISO time/],
    [
      'a date that does not exist',
      '2024-02-30T09:00:00Z\n',
      /trace\.txt:1: .* is no ISO time of a day that exists/,
    ],
    ['a year of another calendar', '0050-01-06T09:00:00\n', /trace\.txt:1: .* before 1900/],
    ['a gap of decades', '1990-01-06T09:00:00Z\n2024-01-06T09:00:00Z\n', /trace\.txt:2: .* 12418d after/],
    ['an impossible date', '2024-13-06T09:00:00Z\n', /trace\.txt:1: .* is no ISO time/],
    ['an unsorted file', '2024-01-06T09:00:00Z\n2024-01-06T08:00:00Z\n', /trace\.txt:2: .* earlier/],
    ['an empty file', '\n', /there is no firing time/],
  ])('refuses %s in one sentence', async (_, text, words) => {
    const message = await complaint('--trace', file('trace.txt', text), '--units-per-day', '10')
    expect(message).toMatch(words)
    expect(message).not.toContain('\n')
  })

  it.each([['0'], ['-5'], ['1.5'], ['many'], ['']])('refuses %j units', async (units) => {
    const trace = file('trace.txt', iso(market))
    expect(await complaint('--trace', trace, `--units-per-day=${units}`)).toContain('--units-per-day')
  })

  it('refuses a file that is not there, one without an end, a zone that does not exist, and no budget', async () => {
    const trace = file('trace.txt', iso(market))
    expect(await complaint('--trace', join(folder, 'none'), '--units-per-day', '9')).toContain('none')
    const endless = await complaint('--trace', '/dev/zero', '--units-per-day', '9')
    expect(endless).toBe('/dev/zero: the file cannot be read: it has more than 64 MiB')
    expect(await complaint('--trace', trace, '--units-per-day', '9', '--time-zone', 'Mars/Base')).toContain(
      'Mars',
    )
    expect(await complaint('--trace', trace)).toContain('--units-per-day')
  })
})

describe('plan --target', () => {
  it('names the smallest budget that reaches a lag on a trace, with the budgets around it', async () => {
    const trace = file('trace.txt', iso(market))
    const printed = await run(planCommand(), '--trace', trace, '--target', 'mean=5m', '--json')
    const { unitsPerDay, budgets } = JSON.parse(printed.out)
    const at = (units: number) => budgets.find((each: { unitsPerDay: number }) => each.unitsPerDay === units)
    expect(at(unitsPerDay).lag.mean).toBeLessThanOrEqual(300)
    expect(budgets[0].lag.mean).toBeGreaterThan(300)
    expect(budgets.at(-1).lag.mean).toBeLessThan(300)
  })

  it('simulates the last days alone where the budget is large, with what came before them learned', () => {
    const times = createTrace('market', 5, 42).times
    const target = { measure: 'mean', seconds: 120 } as const
    const options = benchOptions(targetByTrace(target, times, benchOptions, 2_000).unitsPerDay ?? 0)
    // So many units are not more than the whole trace needs.
    const { mean } = summarizeLags(simulate(times, createSchedule(options, undefined), options).lagsMs)
    expect(mean / 120).toBeGreaterThan(0.96)
    expect(mean / 120).toBeLessThan(1.04)
  }, 60_000)

  it('says the same by what was learned, in words', async () => {
    const learned = createSchedule(benchOptions(1_000), undefined)
    learned.learnHistory(createTrace('market', 5, 21).times)
    const args = ['--config', file('config.yaml', config), '--target', 'p95=2m']
    const { out } = await run(
      planCommand(async () => ({ learned: learned.snapshot(), unitsOfAccount: 1_000, resetsAt: '00:00' })),
      ...args,
    )
    expect(out).toMatch(/UNITS A DAY +MEAN +P50 +P95 +P99/)
    expect(out).toMatch(/main: \d+ units a day are the fewest that reach a p95 of 120 s/)
  })

  it.each([['p95'], ['p42=1s'], ['mean=0s'], ['mean=soon']])('refuses %j in one sentence', async (target) => {
    expect(await complaint('--trace', 'x', '--target', target)).toMatch(
      /--target: .* no target such as p95=10s/,
    )
  })
})

describe('plan --config', () => {
  it('draws a fixed pace as the fixed pace: so many polls an hour until the units are spent', async () => {
    const every = config.replace('minInterval: 5s, maxInterval: 10m', 'every: 1m')
    const { out } = await run(planCommand(), '--config', file('config.yaml', every), '--json')
    const polls = JSON.parse(out).hours.map((hour: { polls: number }) => hour.polls)
    expect(Math.max(...polls)).toBeCloseTo(60, 5)
    expect(polls.filter((count: number) => count < 1).length).toBeGreaterThan(5)
  })

  it.each([0, 31, 57])('draws the hour that has begun whole, %d minutes after it began', async (minutes) => {
    const every = config.replace('minInterval: 5s, maxInterval: 10m', 'every: 2m')
    const nowMs = Date.parse('2026-11-21T02:30:00Z') + minutes * 60_000
    const now = vi.spyOn(Date, 'now').mockReturnValue(nowMs)
    onTestFinished(() => now.mockRestore())
    const { out } = await run(planCommand(), '--config', file('config.yaml', every), '--json', '--hours', '9')
    const { hours } = JSON.parse(out) as { hours: { start: string; polls: number }[] }
    expect(hours[0]?.start).toBe('2026-11-21T02:30:00.000Z')
    expect(hours.map(({ polls }) => polls)).toEqual(Array(9).fill(expect.closeTo(30, 1)))
  })

  it('shows less than a poll an hour as a part of one, and not as none', async () => {
    const { out } = await run(
      planCommand(),
      '--config',
      file('config.yaml', config.replace('unitsPerDay: 1000', 'unitsPerDay: 5')),
    )
    const polls = [...out.matchAll(/ (\S+) polls +\S+ alerts/g)].map(([, count]) => count)
    // 5 in a day; the first and the last hour may be parts of one.
    expect(polls.slice(1, -1)).toEqual(Array(22).fill('0.2'))
    expect(out).toContain('main: 5 units a day')
  })

  it('draws the hours to come and says why', async () => {
    const { out } = await run(planCommand(), '--config', file('config.yaml', config))
    expect(out.match(/polls .* alerts/g)).toHaveLength(24)
    expect(out).toContain('main: 1000 units a day')
    expect(out).toContain('Nothing is learned yet')
    expect(out).toContain('poll.maxInterval 10m')
    expect(out).not.toContain('CANARY')
    expect(out).not.toContain('context')
  })

  it('says what the context of the routes costs on the busiest day, and what it leaves to polls', async () => {
    const path = file('config.yaml', `${config}    context: [price, chart, "macro:usd_free"]\n`)
    const planned = async (hours: string) =>
      JSON.parse((await run(planCommand(), '--config', path, '--hours', hours, '--json')).out)
    const { context, hours } = (await planned('168')) as { context: object; hours: { alerts: number }[] }
    const days = hours.map((_, at) => hours.slice(at, at + 24).reduce((sum, each) => sum + each.alerts, 0))
    const most = Math.max(...days.filter((_, at) => at % 24 === 0))
    // Whatever hours are shown, of whatever day.
    expect((await planned('1')).context).toEqual(context)
    const alerts = Math.ceil(most)
    const units = alerts + Math.ceil(most * 2) + Math.min(24, alerts)
    expect(context).toMatchObject({
      names: { price: alerts },
      units,
      unitsMax: contextUnitsMax(1_000, 0.2),
      unitsForPolls: 1_000 - Math.min(units, contextUnitsMax(1_000, 0.2)),
    })
    expect((await run(planCommand(), '--config', path)).out).toContain(
      `context costs about ${units} units on the busiest day of a week where no two alerts are of one instrument, else less`,
    )
    // Of one instrument each is bought a few times a day, however many alerts there are: not all of that is needed.
    const dear = file('dear.yaml', `${config}    context: [chart, ownership]\n`)
    expect((await run(planCommand(), '--config', dear)).out).toMatch(
      /: context\.unitsShare and polls allow 60, what needs more is left out of messages; polls have at least about 940\n/,
    )
    // Polls of a fixed pace come first: 982 a day, and what is kept for further pages until its end.
    const fixed = file('paced.yaml', readFileSync(path, 'utf8').replace('minInterval: 5s', 'every: 88s'))
    expect(JSON.parse((await run(planCommand(), '--config', fixed, '--json')).out).context).toMatchObject({
      unitsMax: 14,
      unitsForPolls: 986,
    })
  })

  it('plans with what the running bridge has learned, and says where it could not be asked', async () => {
    const learned = createSchedule(benchOptions(1_000), undefined)
    learned.learnHistory(createTrace('market', 5, 21).times)
    const args = ['--config', file('config.yaml', config), '--json']
    const told = await run(
      planCommand(async () => ({ learned: learned.snapshot(), unitsOfAccount: 1_000, resetsAt: '00:00' })),
      ...args,
    )
    const whileAway = async (...more: readonly string[]) => {
      const command = planCommand(() => Promise.reject(new Error('Redis is away')))
      const { out, thrown } = await run(command, ...args, ...more)
      expect(thrown).toBeUndefined()
      return JSON.parse(out)
    }
    expect(JSON.parse(told.out).learnedFrom).toBeGreaterThan(500)
    const { learnedFrom, why } = await whileAway()
    expect([learnedFrom, why.join(' ')]).toEqual([0, expect.stringMatching(/^What .* learned is not known/)])
    expect(why.join(' ')).not.toMatch(/Nothing is learned|No recurring instants/)
    expect((await whileAway('--target', 'p95=10m')).note).toMatch(/is not known/)
    // An embedded Redis that never ran has learned nothing.
    const ofYoung = async () => {
      const young = file('young.yaml', `dataDir: ${join(folder, 'data')}\n${config}`)
      const { out } = await run(planCommand(readLearned), '--config', young, '--json')
      return JSON.parse(out).why[0]
    }
    expect(await ofYoung()).toMatch(/^Nothing is learned yet/)
    mkdirSync(join(folder, 'data'))
    expect(await ofYoung()).toMatch(/^Nothing is learned yet/)
  })

  it("draws budget days that begin with the API's own, where a refusal told of another reset than the config's", async () => {
    const options = { redis: redis.client(), prefix: freshPrefix(), source: 'main' }
    const budget = { unitsPerDay: 1_000, requestsPerMinute: 200 }
    const dayOf = (nowMs: number) => budgetDay(nowMs, benchOptions(1_000))
    const ledger = createLedger({ ...options, ...budget, budgetDay: dayOf })
    // 17:00 in Tehran.
    await ledger.countApiDay({ atMs: Date.UTC(2026, 0, 5, 13, 30), used: 0 })
    const path = file('config.yaml', `redis: { url: "${redis.url}", prefix: ${options.prefix} }\n${config}`)
    const { out } = await run(planCommand(readLearned), '--config', path)
    expect(out).toContain('until the reset at 17:00 (Asia/Tehran)')
    const elsewhere = await run(planCommand(readLearned), '--config', path, '--time-zone', 'UTC')
    expect(elsewhere.out).toContain('until the reset at 00:00 (UTC)')
  })

  it('plans with the units of this config, whatever the bridge has planned with until now, or with what the API grants', async () => {
    const options = { redis: redis.client(), prefix: freshPrefix(), source: 'main' }
    const day = budgetDay(Date.now(), benchOptions(1_000))
    const planned = createSchedule(benchOptions(1_000), undefined)
    planned.observe({ atMs: Date.now(), ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' })
    planned.next(Date.now(), { unitsPerDay: 1_000, unitsLeft: 1_000, day })
    await createScheduleState({ ...options, log: createLogger({ level: 'silent' }) }).save(planned.snapshot())
    const unitsOf = async (budget: string) => {
      const source = config.replace('budget: { unitsPerDay: 1000 }', budget)
      const path = file('config.yaml', `redis: { url: "${redis.url}", prefix: ${options.prefix} }\n${source}`)
      return JSON.parse((await run(planCommand(readLearned), '--config', path, '--json')).out).unitsPerDay
    }
    expect(await unitsOf('budget: { unitsPerDay: 1000 }')).toBe(1_000)
    expect(await unitsOf('budget: { unitsPerDay: 3000 }')).toBe(3_000)
    const refused = { resetsAtMs: null, learnedAtMs: Date.now(), refused: null }
    await createGrantStore(options).save({ v: 1, unitsPerDay: 600, ...refused })
    expect(await unitsOf('budget: { unitsPerDay: 3000 }')).toBe(600)
    expect(await unitsOf('budget: { unitsPerDay: 500 }')).toBe(500)
  })
})
