import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { planCommand } from '../../src/cli/plan/plan.ts'
import { startApp } from '../support/app.ts'
import { run } from '../support/cli.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'

const redis = useRedis()

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'alert-bridge-plan-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

interface Plan {
  readonly hours: readonly { readonly polls: number }[]
  readonly findings: readonly { readonly text: string }[]
  readonly context: { readonly unitsMax: number; readonly unitsForPolls: number }
}

/** Of two sources that share 2,000 units a day. */
async function plans(polls: readonly string[]): Promise<readonly Plan[]> {
  return JSON.parse((await run(planCommand(), '--config', configOf(polls), '--json')).out)
}

/** One source for each, all of one account. */
function configOf(polls: readonly string[]): string {
  const sources = polls.map(
    (poll, index) => `  s${index}:
    baseUrl: https://api.example.com
    token: CANARY${index}
    account: desk
    budget: { unitsPerDay: 2000 }
    poll: ${poll}`,
  )
  const path = join(folder, 'config.yaml')
  writeFileSync(
    path,
    `sources:\n${sources.join('\n')}
sinks:
  hook: { type: webhook, url: "https://hooks.example.com/a" }
routes:
  - { sinks: [hook], context: [price] }
`,
  )
  return path
}

describe('plan --config of two sources of one account', () => {
  it('draws for each the polls that its part of the units buys, also before a bridge ran', async () => {
    for (const { hours } of await plans(['{}', '{}'])) {
      const polls = hours.reduce((sum, hour) => sum + hour.polls, 0)
      expect(polls).toBeGreaterThan(900)
      expect(polls).toBeLessThan(1_010)
    }
  })

  it('promises no context where the fixed paces of both take all units, and says how long these last', async () => {
    const [slow, fast] = await plans(['{ every: 90s }', '{ every: 60s }'])
    expect(slow?.context).toMatchObject({ unitsMax: 0, unitsForPolls: 800 })
    expect(fast?.context).toMatchObject({ unitsMax: 0, unitsForPolls: 1_200 })
    for (const { findings } of [slow, fast].flatMap((each) => each ?? []))
      expect(findings.map(({ text }) => text)).toEqual([expect.stringContaining('last for 20h of each day')])
    for (const { context } of await plans(['{ every: 40s }', '{}']))
      expect(context).toMatchObject({ unitsMax: 0 })
  })

  it('says for each its part of what all context of the account may use beside the polls of fixed paces', async () => {
    // 1,440 a day: an account of 2,000 may use 120.
    for (const { context } of await plans(['{ every: 60s }', '{}']))
      expect(context).toMatchObject({ unitsMax: 60 })
    // 1,920 a day, and four that context leaves to further pages.
    for (const { context } of await plans(['{ every: 90s }', '{ every: 90s }']))
      expect(context).toMatchObject({ unitsMax: 38 })
    // A learned pace plans to use all that 1,600 leave, and context leaves it a fifth of that and a tenth of all.
    for (const { context } of await plans(['{ every: 54s }', '{}']))
      expect(context).toMatchObject({ unitsMax: 58 })
    // 1,920.
    for (const { context } of await plans(['{ every: 45s }', '{}']))
      expect(context).toMatchObject({ unitsMax: 0 })
  })

  it('says which budget of the account reaches a target', async () => {
    const target = async (polls: readonly string[]) => {
      const args = ['--config', configOf(polls), '--source', 's0', '--target', 'mean=40s', '--json']
      return JSON.parse((await run(planCommand(), ...args)).out).unitsPerDay
    }
    const alone = await target(['{}'])
    expect(alone).toBeGreaterThan(900)
    // Each is found to one per cent.
    expect((await target(['{}', '{}'])) / (2 * alone)).toBeCloseTo(1, 2)
  })

  it('answers for each source, and names those that no budget helps', async () => {
    const args = ['--config', configOf(['{ every: 2h }', '{ every: 5m }']), '--target', 'mean=10m']
    const { out, thrown } = await run(planCommand(), ...args)
    expect(out).toMatch(
      /\n\ns0: no budget reaches a mean of 600 s\.\nUNITS [^:]*\n\ns1: \d+ units a day are the fewest that reach a mean of 600 s\.$/m,
    )
    expect(String(thrown)).toMatch(/no budget .* reaches a mean of 600 s for s0; /)
  })

  it('draws a part of few units as the same units of a source that is alone', async () => {
    // 1,920 of 2,000 are for the fixed pace.
    const [part] = await plans(['{}', '{ every: 45s }'])
    const args = ['--config', configOf(['{}']), '--units-per-day', '80', '--json']
    const alone: Plan = JSON.parse((await run(planCommand(), ...args)).out)
    for (const [hour, { polls }] of alone.hours.entries())
      expect(part?.hours[hour]?.polls).toBeCloseTo(polls, 1)
  })

  it('leaves a fixed pace what those of others do not take', async () => {
    const [fast] = await plans(['{ every: 60s }', '{ every: 10m }'])
    expect(fast?.findings).toEqual([])
    expect(fast?.hours.reduce((sum, hour) => sum + hour.polls, 0)).toBeGreaterThan(1_400)
  })
})

describe('plan --trace with a config, of a source of an account', () => {
  const replay = async (polls: readonly string[], ...args: string[]) => {
    const trace = join(folder, 'trace.txt')
    const everyHour = Array.from({ length: 40 }, (_, hour) =>
      new Date(Date.UTC(2026, 9, 5, hour, 7)).toISOString(),
    )
    writeFileSync(trace, `${everyHour.join('\n')}\n`)
    const given = ['--trace', trace, '--config', configOf(polls), '--source', 's0', '--json']
    return JSON.parse((await run(planCommand(), ...given, ...args)).out)
  }

  it('replays what its part buys', async () => {
    expect((await replay(['{ every: 10m }', '{ every: 1m }'])).unitsPerDayMax).toBe(144)
    // On marks, a unit may be left at the end of a day.
    expect([999, 1_000]).toContain((await replay(['{}', '{}'])).unitsPerDayMax)
    expect((await replay(['{}', '{}'], '--units-per-day', '400')).unitsPerDayMax).toBe(200)
  })

  it('spends a part of few units as the same units of a source that is alone', async () => {
    // 1,920 of 2,000 are for the fixed pace.
    const { lag } = await replay(['{}', '{ every: 45s }'])
    expect(lag).toEqual((await replay(['{}'], '--units-per-day', '80')).lag)
  })

  it('names the units of the account that reach a target', async () => {
    const alone = (await replay(['{}'], '--target', 'mean=2m')).unitsPerDay
    const shared = (await replay(['{}', '{}'], '--target', 'mean=2m')).unitsPerDay
    expect(Math.abs(shared - 2 * alone)).toBeLessThan(2)
  })
})

it('plan --url takes and names the units of the account, as plan --config does', async () => {
  const sandbox = await startSandbox({ tokens: [{ value: 'one' }, { value: 'two' }] })
  const source = (token: string, poll: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, account: desk, budget: { unitsPerDay: 2000 }, poll: ${poll} }`
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { s0: ${source('one', '{}')}, s1: ${source('two', '{ every: 2m }')} }
    sinks: { hook: { type: webhook, url: "http://127.0.0.1:9" } }
    routes: [{ sinks: [hook] }]
  `)
  const units = async (...args: string[]) => {
    const { out } = await run(planCommand(), ...args, '--source', 's0', '--json')
    return JSON.parse(out).unitsPerDay
  }
  const config = configOf(['{}', '{ every: 2m }'])
  for (const args of [[], ['--units-per-day', '1000'], ['--target', 'mean=40s']])
    expect(await units('--url', url, ...args)).toBe(await units('--config', config, ...args))
}, 30_000)
