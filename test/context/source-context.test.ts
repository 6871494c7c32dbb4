import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseRow } from '../../src/alert/alert.ts'
import type { AlertContext, ContextName } from '../../src/alert/context.ts'
import { contextUnits } from '../../src/alert/context.ts'
import { contextOfSource } from '../../src/app/source/context.ts'
import { sharingWith } from '../../src/config/checks/accounts.ts'
import { absentFreshMs } from '../../src/context/cached-answer.ts'
import { callsOf } from '../../src/context/calls.ts'
import { failedInARowMax } from '../../src/context/endpoint-health.ts'
import { burstUnits, shareNow, unitsForPolls } from '../../src/context/spending.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { GrantedBudget } from '../../src/poller/budget.ts'
import { connectRedis, type RedisClient } from '../../src/store/connection/redis.ts'
import { contextKeys } from '../../src/store/context-keys.ts'
import { createGrantStore } from '../../src/store/ledger/grant.ts'
import { createKnownUnits } from '../../src/store/ledger/known-units.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { hashAccount } from '../../src/store/source/source-data.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { configOf } from '../support/app.ts'
import { wallClock } from '../support/clock.ts'
import { withFiles } from '../support/files.ts'
import { onTestFinished } from '../support/finished.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { instrumentsOf, type Market, startMarket } from './market.ts'

/** The context of a source against an API over HTTP, with its units in a real Redis. */
const redis = useRedis()
const never = new AbortController().signal

/** As the bridge has it: what is asked in one turn is answered in one, however busy the machine is. */
let commands: RedisClient
beforeAll(async () => {
  commands = connectRedis({ target: { url: redis.url }, profile: 'commands' }, captureLog().log)
  await once(commands, 'ready')
})
afterAll(() => commands.disconnect())

interface Options {
  readonly prefix?: string
  readonly units?: number
  readonly deadline?: string
  readonly unitsShare?: number
  readonly token?: string
  readonly tokenFile?: string
  /** Of a day that is 24 hours long. */
  readonly dayLeftMs?: number
  /** Two sources of one account poll so. */
  readonly every?: string
  readonly of?: 'main' | 'spare'
  readonly clock?: Clock
}

function contextOf(market: Market, options: Options = {}) {
  const {
    prefix = freshPrefix(),
    units = 100_000,
    deadline = '5s',
    unitsShare = 0.2,
    token = 'one',
    tokenFile,
  } = options
  const tokenField = tokenFile === undefined ? `token: ${token}` : `tokenFile: ${tokenFile}`
  const { every, of = 'main' } = options
  const source = `{ baseUrl: "${market.url}", ${tokenField}, budget: { unitsPerDay: ${units} }, context: { unitsShare: ${unitsShare}, deadline: ${deadline} }${every === undefined ? '' : `, account: desk, poll: { every: ${every} }`} }`
  const config = configOf(`
    redis: { url: "${redis.url}" }
    sources: { main: ${source}${every === undefined ? '' : `, spare: ${source}`} }
    sinks: { hook: { type: webhook, url: "https://hooks.example.com" } }
    routes: [{ sinks: [hook] }]`)
  const own = config.sources[of]
  if (own === undefined) throw new Error('no source')
  const endMs = Date.now() + (options.dayLeftMs ?? 43_200_000)
  const budgetDay = () => ({ key: 'today', startMs: endMs - 86_400_000, endMs })
  const captured = captureLog()
  const ledger = createLedger({
    ...{ redis: commands, prefix, source: 'main', unitsPerDay: units, requestsPerMinute: 240, budgetDay },
  })
  const metrics = createMetrics({ version: 'test', node: 'test' })
  const context = contextOfSource(of, own, {
    ...{
      prefix,
      ledger,
      budgetDay,
      sharing: (name: string) => sharingWith(config.sources, name),
      metrics,
      log: captured.log,
      clock: options.clock ?? systemClock,
      role: 'all',
      processStates: new Map(),
      knownUnits: createKnownUnits(),
    },
    redis: { commands, blocking: commands },
    onExchange: () => {},
  })
  onTestFinished(() => context.close())
  const find = (
    index: number,
    names: readonly ContextName[],
    more: { seenAtMs?: number; mayBuy?: boolean; waitMs?: number; waitMsMax?: number } = {},
  ) => context.find(alertOf(index), names, { seenAtMs: Date.now(), mayBuy: true, signal: never, ...more })
  const main = { redis: commands, prefix, source: 'main' }
  /** As a process that polls has it. */
  const budget = () =>
    new GrantedBudget(
      { ...main, ledger, budgetDay, clock: systemClock, log: captured.log, unitsPerDay: units },
      createGrantStore(main),
    )
  return { find, ledger, captured, prefix, context, metrics, budget }
}

function alertOf(index: number) {
  const { symbol, slug } = instrumentsOf(index + 1)[index] ?? { symbol: null, slug: null }
  const parsed = parseRow('main', { id: index + 1, symbol, slug })
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.alert
}

const whyOf = ({ skipped }: AlertContext) => Object.fromEntries(skipped.map(({ what, why }) => [what, why]))

async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const startMs = performance.now()
  return [await work, performance.now() - startMs]
}

describe('what is bought', () => {
  it('costs a burst of 2,000 alerts on 300 instruments at most 20 units, and each has its price', async () => {
    const market = await startMarket(320)
    const { find } = contextOf(market, { units: 2_000, deadline: '10s' })
    const results: AlertContext[] = []
    let next = 0
    const worker = async () => {
      for (let at = next++; at < 2_000; at = next++)
        results.push(await find((at * 7) % 300, ['price', 'chart']))
    }
    await Promise.all(Array.from({ length: 20 }, worker))
    expect(results.filter(({ parts }) => parts.price !== undefined)).toHaveLength(2_000)
    expect(results.flatMap(({ skipped }) => skipped.filter(({ why }) => why !== 'burst'))).toEqual([])
    expect(market.units()).toBeLessThanOrEqual(20)
  }, 60_000)

  it('comes for many instruments by the first page, and then by several at the same time', async () => {
    const market = await startMarket(520)
    market.behave('/board', { delayMs: 100 })
    const { find } = contextOf(market, { deadline: '10s' })
    const places = [5, 50, 110, 150, 210, 250, 310, 350, 370]
    const found = await Promise.all(places.map((index) => find(index, ['price'])))
    expect(found.map(whyOf)).toEqual(places.map(() => ({})))
    expect(market.calls.map((path) => /page=(\d)/.exec(path)?.[1]).toSorted()).toEqual(['1', '2', '3', '4'])
    expect([market.atOnce(), market.units()]).toEqual([3, 4])
  })

  it('comes by all pages at the same time where it is known how many there were, for no more units', async () => {
    const market = await startMarket(520)
    market.behave('/board', { delayMs: 200 })
    const places = Array.from({ length: 13 }, (_, at) => 42 * at)
    const first = contextOf(market, { deadline: '10s' })
    await Promise.all(places.map((index) => first.find(index, ['price'])))
    expect([market.atOnce(), market.units()]).toEqual([3, 6])
    const clock = { ...systemClock, now: () => Date.now() + 3_600_000 }
    const later = contextOf(market, { deadline: '10s', clock, prefix: first.prefix })
    const seenAtMs = clock.now()
    const found = await Promise.all(places.map((index) => later.find(index, ['price'], { seenAtMs })))
    expect(found.map(whyOf)).toEqual(places.map(() => ({})))
    expect([market.atOnce(), market.units()]).toEqual([6, 12])
    // Of a few instruments the first page may have all.
    const evenLater = { ...systemClock, now: () => Date.now() + 7_200_000 }
    const few = contextOf(market, { deadline: '10s', clock: evenLater, prefix: first.prefix })
    await Promise.all([5, 6, 7, 8].map((index) => few.find(index, ['price'], { seenAtMs: evenLater.now() })))
    expect(market.units()).toBe(13)
  })

  it('costs a burst on instruments of the first page one unit, also where it is known how many pages there were', async () => {
    const market = await startMarket(720)
    // All that are asked for at the same time have come before the first is answered.
    market.behave('/board', { delayMs: 200 })
    const first = contextOf(market, { deadline: '10s' })
    const ask = async (indexes: readonly number[], hours: number) => {
      const clock = { ...systemClock, now: () => Date.now() + hours * 3_600_000 }
      const { find } = contextOf(market, { deadline: '10s', clock, prefix: first.prefix })
      const before = market.units()
      const found = await Promise.all(
        indexes.map((index) => find(index, ['price'], { seenAtMs: clock.now() })),
      )
      expect(found.map(whyOf)).toEqual(indexes.map(() => ({})))
      return market.units() - before
    }
    const most = Array.from({ length: 20 }, (_, at) => 5 * at)
    const all = Array.from({ length: 20 }, (_, at) => 37 * at)
    expect([await ask(most, 0), await ask(most, 1)]).toEqual([1, 1])
    // One of the whole market is followed by one of the first page: that one is read like the one before, the next is not.
    expect([await ask(all, 2), await ask(all, 3), await ask(most, 4), await ask(most, 5)]).toEqual([
      8, 8, 8, 1,
    ])
  })

  it('comes by searches again where the first page shows that more pages are left than instruments', async () => {
    const market = await startMarket(1_020)
    const { find } = contextOf(market)
    const found = await Promise.all([905, 925, 950, 975].map((index) => find(index, ['price'])))
    expect(found.map(whyOf)).toEqual([{}, {}, {}, {}])
    expect(market.calls.map((call) => /search=|page=\d/.exec(call)?.[0])).toEqual([
      ...['page=1', 'search=', 'search=', 'search=', 'search='],
    ])
  })

  it('comes also from pages beyond the first thousand instruments', async () => {
    const market = await startMarket(1_300)
    const { find } = contextOf(market)
    const last = Array.from({ length: 14 }, (_, n) => 1_299 - 20 * n)
    const found = await Promise.all(last.map((index) => find(index, ['price'])))
    expect(found.map(whyOf)).toEqual(last.map(() => ({})))
    expect(market.units()).toBe(13)
  })

  it('comes from the pages that are there, while another one fails or hangs', async () => {
    const places = [5, 50, 210, 250, 310, 350, 370]
    for (const how of [{ status: 500, code: 'server_error' }, { hang: true }] as const) {
      const market = await startMarket(520)
      market.behave('page=2', how)
      const { find } = contextOf(market, { deadline: '10s' })
      const absent = [110, 150].map((index) => find(index, ['price']))
      const found = await Promise.all(places.map((index) => find(index, ['price'])))
      expect(found.map(whyOf)).toEqual(places.map(() => ({})))
      expect(market.units()).toBe(4)
      if ('status' in how) expect((await Promise.all(absent)).map(whyOf)).toContainEqual({ price: 'failed' })
    }
  })

  it('is bought for nobody once all alerts that wait for it went out', async () => {
    const market = await startMarket(1_020)
    market.behave('/board', { delayMs: 1_400 })
    const one = contextOf(market, { deadline: '2s' })
    const late = [705, 725, 750, 810, 825, 850, 875, 910, 925, 950].map((index) => one.find(index, ['price']))
    expect((await Promise.all(late)).flatMap(({ parts }) => Object.keys(parts))).toEqual([])
    // The lock is free once the pages that were under way have come.
    market.behave('/board', undefined)
    const two = contextOf(market, { prefix: one.prefix, deadline: '5s' })
    expect(whyOf(await two.find(450, ['price']))).toEqual({})
    expect(market.units()).toBe(5)
  })

  it('comes for a few instruments by as many searches at once, and for more by pages', async () => {
    const market = await startMarket(320)
    market.behave('/board', { delayMs: 300 })
    const { find } = contextOf(market)
    const few = await Promise.all([250, 270, 310].map((index) => find(index, ['price'])))
    expect(few.map(whyOf)).toEqual([{}, {}, {}])
    expect(market.calls.map((call) => call.includes('search='))).toEqual([true, true, true])
    expect(market.atOnce()).toBe(3)
    await find(200, ['price'])
    expect(market.calls.slice(3).map((call) => /search=|page=\d/.exec(call)?.[0])).toEqual([
      ...['page=1', 'page=2', 'page=3'],
    ])
  })

  it('is asked for twenty instruments at the same time, so that none waits for the call of another', async () => {
    const market = await startMarket(20)
    market.behave('/prices', { hang: true })
    const { find } = contextOf(market)
    for (let index = 0; index < 20; index += 1) void find(index, ['chart'])
    await until('all are asked for', () => market.calls.length === 20)
  })

  it('serves all alerts of an instrument over replicas by one call, while they wait for it too', async () => {
    const market = await startMarket(10)
    market.behave('/prices', { delayMs: 200 })
    const one = contextOf(market)
    const two = contextOf(market, { prefix: one.prefix })
    const found = await Promise.all(
      [1, 1, 1].flatMap((index) => [one, two].map(({ find }) => find(index, ['chart']))),
    )
    expect(found.map(({ parts }) => parts.chart?.data)).toEqual(Array(6).fill(found[0]?.parts.chart?.data))
    expect(found[0]?.parts.chart?.data).toMatchObject({ unit: 'rial' })
    expect(market.calls).toHaveLength(1)
  })

  it('is bought by one process at a time, also by calls that begin at the end of a long deadline', async () => {
    const market = await startMarket(10)
    market.behave('/board', { hang: true })
    const { find, prefix } = contextOf(market, { deadline: '10s' })
    void find(1, ['price'])
    await until('it is asked for', () => market.calls.length === 1)
    const { lockOf } = contextKeys(prefix, 'main', hashAccount(prefix, market.url, 'one'))
    // A call takes as long as the deadline, at the most.
    expect(await redis.client().pttl(lockOf('price'))).toBeGreaterThan(15_000)
  })

  it('has its numbers as the API spelled them, also when it was kept', async () => {
    const market = await startMarket(10)
    const spelled = '{"unit":"rial","id":9007199254740995,"close":1.10,"huge":1e400}'
    market.behave('/prices', { body: `{"data":${spelled},"meta":{"of":9007199254740993}}` })
    market.behave('/filings', {
      body: '{"data":[{"slug":"stock-2","periodMonths":12.0,"id":9007199254740995}],"meta":{"page":1,"perPage":100,"total":1,"lastPage":1}}',
    })
    const { find } = contextOf(market)
    for (const mayBuy of [true, false]) {
      const { parts } = await find(1, ['chart', 'filing'], { mayBuy })
      expect(JSON.stringify(parts.chart?.data)).toBe(spelled)
      expect(JSON.stringify(parts.chart)).toContain('"of":9007199254740993')
      expect(JSON.stringify(parts.filing?.data)).toContain('"periodMonths":12.0,"id":9007199254740995')
    }
    expect(market.calls).toHaveLength(2)
  })

  it('is found where trade has moved its instrument from a page that was not read yet to one that was', async () => {
    const market = await startMarket(320)
    const { find, context } = contextOf(market)
    await Promise.all([1, 2, 3, 4].map((index) => find(index, ['price'])))
    market.put({ symbol: 'بالا', slug: 'up' }, 0)
    const up = { ...alertOf(1), symbol: 'بالا', slug: 'up' }
    const moved = context.find(up, ['price'], { seenAtMs: Date.now(), mayBuy: true, signal: never })
    await Promise.all([150, 250, 310].map((index) => find(index, ['price'])))
    expect((await moved).parts.price?.data).toMatchObject({ slug: 'up' })
    expect(market.calls.map((call) => /search=|page=\d/.exec(call)?.[0]).toSorted()).toEqual([
      ...['page=1', 'page=2', 'page=3', 'page=4', 'search='],
    ])
  })

  it('is found where trade has moved many to a page that was read a while ago', async () => {
    const market = await startMarket(320)
    const clock = wallClock()
    const { find, context } = contextOf(market, { clock })
    await Promise.all([1, 2, 3, 4].map((index) => find(index, ['price'])))
    clock.turn(6_000)
    const moved = [1, 2, 3, 4].map((n) => ({ symbol: `بالا${n}`, slug: `up-${n}` }))
    for (const each of moved) market.put(each, 0)
    const found = moved.map((each) =>
      context.find({ ...alertOf(1), ...each }, ['price'], {
        ...{ seenAtMs: clock.now(), mayBuy: true, signal: never },
      }),
    )
    await Promise.all([150, 250, 310].map((index) => find(index, ['price'], { seenAtMs: clock.now() })))
    expect((await Promise.all(found)).map(whyOf)).toEqual(moved.map(() => ({})))
    expect(market.calls.map((call) => /search=|page=\d/.exec(call)?.[0]).toSorted()).toEqual([
      ...['page=1', 'page=1', 'page=2', 'page=3', 'page=4'],
    ])
  })

  it('is found on the later pages of a search, as far as three', async () => {
    const market = await startMarket(450)
    // The symbol is a part of all the others.
    const named = (symbol: string) => ({ ...alertOf(1), symbol, slug: null })
    // Each time for the first time: a second instrument would be looked for on the pages of the board.
    const find = (symbol: string) =>
      contextOf(market).context.find(named(symbol), ['price'], {
        ...{ seenAtMs: Date.now(), mayBuy: true, signal: never },
      })
    market.put({ symbol: 'ماد', slug: 'late' }, 250)
    expect((await find('ماد')).parts.price?.data).toMatchObject({ slug: 'late' })
    expect(market.calls).toHaveLength(3)
    expect(market.calls[2]).toMatch(/search=ماد&sort=value&direction=desc&page=3/)
    market.put({ symbol: 'اد', slug: 'later' }, 350)
    expect(whyOf(await find('اد'))).toEqual({ price: 'not_found' })
    expect(market.units()).toBe(6)
  })

  it('is of the time of its alert: what was read since then serves it however late, what is older is bought again', async () => {
    const market = await startMarket(10)
    const clock = wallClock()
    const { find } = contextOf(market, { clock })
    const first = await find(1, ['price'])
    expect(market.calls[0]).toMatch(/^\/api\/v1\/board\?search=/)
    clock.turn(61_000)
    expect((await find(1, ['price'], { seenAtMs: Date.now() })).parts).toEqual(first.parts)
    expect(market.calls).toHaveLength(1)
    await find(1, ['price'], { seenAtMs: clock.now() })
    expect(market.calls).toHaveLength(2)
  })

  it('is not taken as new for as long as the clock was ahead of the process that bought it', async () => {
    const market = await startMarket(10)
    const [ahead, clock] = [wallClock(), wallClock()]
    ahead.turn(3_600_000)
    const buyer = contextOf(market, { clock: ahead })
    await buyer.find(1, ['price'], { seenAtMs: ahead.now() })
    const other = contextOf(market, { clock, prefix: buyer.prefix })
    clock.turn(1_800_000)
    const { parts } = await other.find(1, ['price'], { seenAtMs: clock.now() })
    expect(market.calls).toHaveLength(2)
    expect(Date.parse(parts.price?.at ?? '')).toBeLessThanOrEqual(clock.now())
  })

  it('is taken by a retry where it is kept, and not bought by it', async () => {
    const market = await startMarket(10)
    const { find } = contextOf(market)
    expect(whyOf(await find(1, ['price'], { mayBuy: false }))).toEqual({ price: 'retry' })
    await find(1, ['price'])
    expect(await find(1, ['price'], { mayBuy: false })).toMatchObject({ parts: { price: {} }, skipped: [] })
    expect(market.calls).toHaveLength(1)
  })

  it('is asked for with the token of its account only: one that is replaced meanwhile is of another', async () => {
    const market = await startMarket(10)
    await withFiles({ token: 'one' }, async ({ token: tokenFile }) => {
      const { find, prefix, ledger } = contextOf(market, { tokenFile })
      const { lockOf } = contextKeys(prefix, 'main', hashAccount(prefix, market.url, 'one'))
      // Another process buys, so that this one waits.
      await redis.client().set(lockOf('valuation'), 'other')
      const waiting = find(1, ['valuation'])
      await writeFile(tokenFile, 'two')
      await redis.client().del(lockOf('valuation'))
      expect(whyOf(await waiting)).toEqual({ valuation: 'unavailable' })
      const { byPurpose } = await ledger.used({ key: 'today', startMs: 0, endMs: 0 })
      expect([market.calls, byPurpose]).toEqual([[], {}])
      expect(whyOf(await find(1, ['valuation']))).toEqual({})
    })
  })

  it('is bought again where what is kept cannot be read', async () => {
    const market = await startMarket(10)
    const { find, prefix } = contextOf(market)
    await find(1, ['price'])
    const [values = ''] = await redis.client().keys(`*${prefix}*:values`)
    const fields = (await redis.client().hkeys(values)).filter((field) => field !== 'bytes')
    for (const [index, kept] of ['null', '5', '"x"', '[]', '{"of":7}', '{'].entries()) {
      for (const field of fields) await redis.client().hset(values, field, `${Date.now()} ${kept}`)
      expect([kept, Object.keys((await find(1, ['price'])).parts)]).toEqual([kept, ['price']])
      expect(market.calls.length).toBeGreaterThanOrEqual(index + 2)
    }
  })

  it('is nothing for an alert without an instrument, but the macro series, and nothing that the API does not hold', async () => {
    const market = await startMarket(10)
    const { find } = contextOf(market)
    const none = { ...alertOf(1), symbol: null, slug: null }
    const { context } = contextOf(market)
    const found = await context.find(none, ['price', 'macro:usd_free'], {
      ...{ seenAtMs: Date.now(), mayBuy: true, signal: never },
    })
    expect([Object.keys(found.parts), whyOf(found)]).toEqual([['macro:usd_free'], { price: 'no_instrument' }])
    const calls = market.calls.length
    expect(whyOf(await find(50, ['price']))).toEqual({ price: 'not_found' })
    expect(whyOf(await find(50, ['price']))).toEqual({ price: 'not_found' })
    expect(market.calls).toHaveLength(calls + 1)
  })
})

describe('what the API does not hold', () => {
  it('is asked for again sooner than a value: an instrument that is listed today has its chart today', async () => {
    const market = await startMarket(10)
    const clock = wallClock()
    const { find } = contextOf(market, { clock })
    const later = (ms: number) => {
      clock.turn(ms)
      return find(10, ['chart'], { seenAtMs: clock.now() })
    }
    market.behave('stock-11/', { status: 404, code: 'not_found' })
    expect(whyOf(await later(0))).toEqual({ chart: 'not_found' })
    expect(whyOf(await later(60_000))).toEqual({ chart: 'not_found' })
    expect(market.calls).toHaveLength(1)
    market.behave('stock-11/', undefined)
    expect(whyOf(await later(absentFreshMs))).toEqual({})
    // A value is kept for longer.
    await later(absentFreshMs)
    expect(market.calls).toHaveLength(2)
  })
})

describe('what is of another instrument', () => {
  // One symbol is written with Arabic letters; people cannot tell them apart, and messages compare them as equal.
  const [persian, arabic] = [
    { symbol: 'کیان', slug: 'kian' },
    { symbol: 'كيان', slug: 'kian-old' },
  ]
  const ask = (context: ReturnType<typeof contextOf>['context'], of: object, names: readonly ContextName[]) =>
    context.find({ ...alertOf(1), ...of }, names, {
      ...{ seenAtMs: Date.now(), mayBuy: true, signal: never },
    })
  const slugIn = ({ parts }: AlertContext, name: 'price' | 'chart') =>
    (parts[name]?.data as { slug?: string } | undefined)?.slug

  it.each([
    ['a symbol that looks alike', persian, arabic],
    ['one that looks alike and is listed first', arabic, persian],
    ['the same symbol on another board', persian, { ...persian, slug: 'kian-fara' }],
  ])('is not taken for %s, bought alone, together or kept', async (_other, first, second) => {
    const market = await startMarket(10)
    market.put(first, 0)
    const alone = contextOf(market)
    expect(slugIn(await ask(alone.context, first, ['price']), 'price')).toBe(first.slug)
    expect(whyOf(await ask(alone.context, second, ['price']))).toEqual({ price: 'not_found' })
    expect(slugIn(await ask(alone.context, first, ['chart']), 'chart')).toBe(first.slug)
    market.put(second, 1)
    const both = contextOf(market)
    const found = await Promise.all([first, second].map((of) => ask(both.context, of, ['price', 'chart'])))
    for (const name of ['price', 'chart'] as const)
      expect(found.map((each) => slugIn(each, name))).toEqual([first.slug, second.slug])
    const many = contextOf(market)
    await Promise.all([first, ...instrumentsOf(9)].map((of) => ask(many.context, of, ['price'])))
    const calls = market.calls.length
    for (const of of [first, second])
      expect(slugIn(await ask(many.context, of, ['price']), 'price')).toBe(of.slug)
    expect(market.calls).toHaveLength(calls)
    // Without a slug, the spelling decides.
    if (first.symbol === second.symbol) return
    const { symbol } = second
    expect(slugIn(await ask(contextOf(market).context, { symbol, slug: null }, ['price']), 'price')).toBe(
      second.slug,
    )
  })

  it('is no context where the answer itself names it, and an id is not asked for where a name is known', async () => {
    const market = await startMarket(10)
    const { context } = contextOf(market)
    market.behave('/prices', {
      body: '{"data":{"symbol":"فولاژ","slug":"foolazh","unit":"rial","points":[]}}',
    })
    market.behave('/filings', {
      body: '{"data":[{"slug":"foolazh","title":"another"},{"slug":"12","title":"own"}],"meta":{"page":1,"perPage":100,"total":2,"lastPage":1}}',
    })
    const found = await ask(context, { symbol: 'فولاد', slug: '12' }, ['chart', 'filing'])
    expect(whyOf(found)).toEqual({ chart: 'not_found' })
    expect(found.parts.filing?.data).toEqual({ slug: '12', title: 'own' })
    expect(market.calls).toContain('/api/v1/instruments/فولاد/prices?days=60')
  })
})

it('valuations are no context where one of several records names another instrument', async () => {
  const market = await startMarket(10)
  // Nobody's: so each instrument is asked for by its own call.
  market.behave('/api/v1/valuations', { body: '{"data":[{"gapNow":1}]}' })
  market.behave('stock-2/valuations', { body: '{"data":[{"gapNow":1},{"slug":"stock-3","gapNow":2}]}' })
  market.behave('stock-4/valuations', { body: '{"data":[{"gapNow":1},{"slug":"stock-4","gapNow":2}]}' })
  const { find } = contextOf(market)
  expect(whyOf(await find(1, ['valuation']))).toEqual({ valuation: 'not_found' })
  expect(whyOf(await find(3, ['valuation']))).toEqual({})
})

describe('a macro series', () => {
  it('is no context where the answer names other series alone', async () => {
    const market = await startMarket(10)
    const series = (key: string) => `{"key":"${key}","points":[{"date":"2026-11-21","value":9}]}`
    for (const [answer, why] of [
      [series('gold'), 'not_found'],
      [`[${series('gold')}]`, 'not_found'],
      [`[${series('gold')},${series('usd_free')}]`, undefined],
      ['[{"date":"2026-11-21","value":9}]', undefined],
    ] as const) {
      market.behave('/macro', { body: `{"data":${answer}}` })
      const found = await contextOf(market).find(1, ['macro:usd_free'])
      expect([answer, whyOf(found)['macro:usd_free']]).toEqual([answer, why])
    }
  })
})

describe('a name of digits alone', () => {
  it('is not asked for as an instrument, since it may be the id of another one whose answer names nobody', async () => {
    const market = await startMarket(10)
    market.put({ symbol: '7000', slug: '' }, 0)
    const { context } = contextOf(market)
    const found = await context.find(
      { ...alertOf(1), symbol: '7000', slug: null },
      ['price', 'chart', 'indicators'],
      { seenAtMs: Date.now(), mayBuy: true, signal: never },
    )
    expect(whyOf(found)).toEqual({ chart: 'no_instrument', indicators: 'no_instrument' })
    expect(found.parts.price?.data).toMatchObject({ symbol: '7000' })
    expect(market.calls).toHaveLength(1)
  })
})

describe('a fault of an endpoint', () => {
  it.each([
    ['404', { status: 404, code: 'not_found' }, 'not_found'],
    ['422', { status: 422, code: 'invalid_request' }, 'failed'],
    ['500', { status: 500, code: 'server_error' }, 'failed'],
    ['429', { status: 429, code: 'rate_limited', retryAfter: '30' }, 'held'],
    ['a wrong shape', { body: '{"data":[1,2]}' }, 'failed'],
    ['no JSON', { body: '<html>' }, 'failed'],
    [
      'a huge value',
      { body: JSON.stringify({ data: { unit: 'rial', x: 'x'.repeat(300_000) } }) },
      'too_large',
    ],
    [
      'a huge answer',
      { body: JSON.stringify({ data: { unit: 'rial', x: 'x'.repeat(3_000_000) } }) },
      'too_large',
    ],
    [
      'too many numbers',
      { body: `{"data":{"unit":"rial","points":[${'1.0,'.repeat(5_001)}1]}}` },
      'too_large',
    ],
    ['silence', { hang: true }, 'deadline'],
  ] as const)('%s leaves it out, within the deadline, and nothing else', async (_what, how, why) => {
    const market = await startMarket(10)
    market.behave('/prices', how)
    const { find, ledger } = contextOf(market, { deadline: why === 'deadline' ? '1s' : '8s' })
    // After a 429 nothing else is asked either.
    const others: ContextName[] = why === 'held' ? [] : ['filing', 'macro:usd_free']
    const [found, ms] = await timed(find(1, ['chart', ...others]))
    expect(whyOf(found)).toEqual({ chart: why })
    expect(Object.keys(found.parts)).toEqual(others)
    if (why === 'deadline') expect(ms).toBeLessThan(2_500)
    // Polls are held by a 429 as long as the API asks, and by nothing else.
    const held = await ledger.currentHold()
    const heldMs = (held?.untilMs ?? 0) - Date.now()
    if (why === 'held') expect([heldMs > 15_000, heldMs < 31_000]).toEqual([true, true])
    else expect(held).toBeUndefined()
  })

  it.each([
    ['silence', { hang: true }, ['deadline', 'resting', 'resting']],
    [
      '500 for each instrument',
      { status: 500, code: 'server_error' },
      ['failed', 'failed', 'failed', 'resting'],
    ],
  ] as const)('%s lets that endpoint rest, and no other', async (_what, how, whys) => {
    const market = await startMarket(10)
    market.behave('/prices', how)
    const { find } = contextOf(market, { deadline: whys[0] === 'deadline' ? '2s' : '8s' })
    const others: ContextName[] = ['price', 'indicators', 'filing', 'macro:usd_free']
    for (const [at, why] of whys.entries()) {
      const found = await find(at + 1, ['chart', ...others])
      expect(whyOf(found)).toEqual({ chart: why })
      expect(Object.keys(found.parts)).toEqual(others)
    }
  })

  it('is counted as failed where the API was late, and as skipped where the time of the alert was too short', async () => {
    const market = await startMarket(10)
    market.behave('stock-3/prices', { delayMs: 1_500 })
    market.behave('/indicators', { hang: true })
    const { find, metrics } = contextOf(market, { deadline: '2s' })
    const results = async (what: string) => {
      const { values } = await metrics.context.get()
      return Object.fromEntries(
        values.flatMap(({ labels, value }) =>
          labels.what === what && value > 0 ? [[labels.result, value]] : [],
        ),
      )
    }
    // Its sink has used up nearly all of its time: nothing is asked. Then there is time, but less than the answer takes.
    expect(whyOf(await find(1, ['chart'], { waitMs: 100 }))).toEqual({ chart: 'deadline' })
    expect(whyOf(await find(2, ['chart'], { waitMs: 500 }))).toEqual({ chart: 'deadline' })
    expect(await results('chart')).toEqual({ skipped: 2 })
    expect(whyOf(await find(1, ['indicators']))).toEqual({ indicators: 'deadline' })
    expect(await results('indicators')).toEqual({ failed: 1 })
  })

  it('is none where an alert that expires soon could not wait: others, which wait for the same call, get its answer', async () => {
    const market = await startMarket(10)
    market.behave('/prices', { delayMs: 1_400 })
    const { find, captured } = contextOf(market, { deadline: '2s' })
    const [hasty, patient] = await Promise.all([find(1, ['chart'], { waitMsMax: 1_100 }), find(1, ['chart'])])
    expect([hasty, patient].map(whyOf)).toEqual([{ chart: 'deadline' }, {}])
    expect(captured.with('alerts do not wait for this context for a while')).toEqual([])
  })

  it('is a board whose rows name no instrument in a known field: the log says so, and no alert that the API has nothing', async () => {
    const market = await startMarket(10)
    const rows = instrumentsOf(10).map((instrument) => ({ instrument, last: 5_230 }))
    const meta = { page: 1, perPage: 100, total: 10, lastPage: 1 }
    market.behave('/board', { body: JSON.stringify({ data: rows, meta }) })
    const { find, captured } = contextOf(market)
    const whys = []
    for (const index of [1, 2, 3, 4]) whys.push(whyOf(await find(index, ['price'])).price)
    expect(whys).toEqual(['failed', 'failed', 'failed', 'resting'])
    expect(captured.with('alerts do not wait for this context for a while')).toMatchObject([
      { level: 'warn', what: 'price', reason: expect.stringContaining('context.names') },
    ])
    expect(market.units()).toBe(3)
    // A page of many shows it at once.
    const other = contextOf(market)
    const found = await Promise.all([1, 2, 3, 4, 5, 6].map((index) => other.find(index, ['price'])))
    expect(found.map(whyOf)).toEqual(found.map(() => ({ price: 'failed' })))
    expect(market.units()).toBe(4)
  })

  it('is said with its reason also where only one instrument has alerts, and each reason once', async () => {
    const market = await startMarket(10)
    const meta = { page: 1, perPage: 100, total: 1, lastPage: 1 }
    market.behave('/board', { body: JSON.stringify({ data: [{ ticks: 5_230 }], meta }) })
    market.behave('/prices', { status: 500, code: 'server_error' })
    const { find, captured } = contextOf(market)
    for (const index of [1, 1, 2])
      expect(Object.keys((await find(index, ['price', 'chart'])).parts)).toEqual([])
    const said = captured.lines.filter(({ level }) => level === 'warn')
    expect(said.toSorted((a, b) => String(a['what']).localeCompare(String(b['what'])))).toMatchObject([
      { what: 'chart', reason: expect.stringContaining('HTTP 500') },
      { what: 'price', reason: expect.stringContaining('context.names') },
    ])
  })

  it('429 of the day teaches the plan of every process how much the API grants', async () => {
    const market = await startMarket(10)
    const { find, ledger, budget } = contextOf(market, { units: 1_000 })
    const plan = budget()
    await plan.load()
    await ledger.reserve({ cost: 400, purpose: 'poll' })
    expect((await plan.available(Date.now())).budget.unitsPerDay).toBe(1_000)
    market.behave('/indicators', {
      ...{ status: 429, code: 'rate_limited', retryAfter: '43200', detail: { retryAfter: 43_200 } },
    })
    expect(whyOf(await find(1, ['indicators']))).toEqual({ indicators: 'held' })
    const after = await plan.available(Date.now())
    expect(after.budget).toMatchObject({ unitsPerDay: 400, unitsLeft: 0 })
    expect(after.lesson).toBe('the API grants 400 units a day, the config says 1000')
  })

  it.each([
    ['chart', '/prices'],
    ['price', '/board'],
  ] as const)(
    'that lasts delays no further alert: nobody waits for a %s that rests, and it is tried without waiting',
    async (name, path) => {
      const market = await startMarket(10)
      market.behave(path, { delayMs: 1_500 })
      const { find, captured } = contextOf(market, { deadline: '500ms' })
      expect(whyOf(await find(1, [name]))).toEqual({ [name]: 'deadline' })
      expect(whyOf(await find(2, [name]))).toEqual({ [name]: 'resting' })
      expect(captured.with('alerts do not wait for this context for a while')).toHaveLength(1)
      // What came too late is kept for the next attempt.
      await expect
        .poll(async () => (await find(1, [name], { mayBuy: false })).skipped, { timeout: 10_000 })
        .toEqual([])
      expect(market.calls.filter((each) => each.includes(path))).toHaveLength(1)
    },
  )

  it.each([
    ['422', { status: 422, code: 'invalid_request' }],
    ['a wrong shape', { body: '{"data":[1,2]}' }],
    ['no JSON', { body: '<html>' }],
    ['500', { status: 500, code: 'server_error' }],
  ] as const)(
    '%s of one instrument rests that instrument, and of several in a row the endpoint',
    async (_what, how) => {
      const market = await startMarket(10)
      const odd = [0, 1, 2, 3]
      for (const index of odd) market.behave(`stock-${index + 1}/`, how)
      const { find, captured } = contextOf(market)
      const rests = () => captured.with('alerts do not wait for this context for a while')
      const chartOf = async (index: number) => whyOf(await find(index, ['chart']))['chart']
      expect([await chartOf(0), await chartOf(0), await chartOf(4)]).toEqual(['failed', 'resting', undefined])
      expect(await chartOf(1)).toBe('failed')
      expect([rests().length, market.calls.length]).toEqual([0, 3])
      // An answer in between shows that the endpoint is well.
      expect(await chartOf(5)).toBe(undefined)
      for (const index of odd.slice(2)) await chartOf(index)
      expect(await chartOf(6)).toBe(undefined)
      expect(rests()).toHaveLength(0)
      const broken = contextOf(market)
      for (const index of odd.slice(0, failedInARowMax))
        expect(whyOf(await broken.find(index, ['chart']))).toEqual({ chart: 'failed' })
      expect(whyOf(await broken.find(6, ['chart']))).toEqual({ chart: 'resting' })
      expect(broken.captured.with('alerts do not wait for this context for a while')).toHaveLength(1)
    },
  )

  it('403 for the scope is remembered and said once; with another token it is asked again', async () => {
    const market = await startMarket(10)
    market.behave('/indicators', { status: 403, code: 'scope_required' })
    const { find, captured, prefix } = contextOf(market)
    for (const index of [1, 2, 3])
      expect(whyOf(await find(index, ['indicators']))).toEqual({ indicators: 'scope' })
    expect(market.calls).toHaveLength(1)
    expect(captured.with('the API refuses this context')).toHaveLength(1)
    const other = contextOf(market, { prefix, token: 'two' })
    await other.find(1, ['indicators'])
    expect(market.calls).toHaveLength(2)
    // Several calls are refused before the first refusal is known.
    const together = contextOf(market, { token: 'three' })
    await Promise.all([1, 2, 3].map((index) => together.find(index, ['indicators'])))
    expect(together.captured.with('the API refuses this context')).toHaveLength(1)
  })
})

describe('the units', () => {
  it('are those of the table', () => {
    const names: ContextName[] = ['price', 'chart', 'indicators', 'filing', 'ownership', 'macro:x']
    for (const name of names) expect([name, contextUnits(name)]).toEqual([name, callsOf(name).single.units])
    expect(contextUnits('valuation')).toBe(callsOf('valuation').bulk?.page(1).units)
  })

  it('of context end with its share of the day', async () => {
    const market = await startMarket(10)
    const { find, ledger } = contextOf(market, { units: 100, unitsShare: 0.15 })
    expect(whyOf(await find(1, ['chart']))).toEqual({})
    expect(whyOf(await find(2, ['chart', 'price']))).toEqual({ chart: 'budget' })
    const day = { key: 'today', startMs: 0, endMs: 0 }
    expect((await ledger.used(day)).byPurpose).toEqual({ context: 3 })
  })

  it('of context are counted of those that the API grants, where its refusals showed less than the config says', async () => {
    const market = await startMarket(10)
    const { find, prefix } = contextOf(market, { units: 100_000 })
    const grants = createGrantStore({ redis: commands, prefix, source: 'main' })
    await grants.save({ v: 1, unitsPerDay: 1_000, resetsAtMs: null, learnedAtMs: Date.now() })
    // In a burst a hundredth of the day, of which calls of more than one unit may use half.
    const whys = []
    for (const index of [1, 2, 3]) whys.push(whyOf(await find(index, ['chart'])))
    expect(whys).toEqual([{}, {}, { chart: 'burst' }])
    expect(market.units()).toBe(4)
  })

  it('of a burst are those of the account, however many sources have it, and whatever token', async () => {
    const market = await startMarket(10)
    const desk = { prefix: freshPrefix(), units: 1_000, every: '15m' }
    const { find } = contextOf(market, desk)
    for (const index of [1, 2]) expect(whyOf(await find(index, ['chart']))).toEqual({})
    for (const other of [{ of: 'spare' }, { token: 'two' }, { of: 'spare', token: 'two' }] as const) {
      const found = await contextOf(market, { ...desk, ...other }).find(3, ['chart'])
      expect([other, whyOf(found)]).toEqual([other, { chart: 'burst' }])
    }
  })

  it('of context are none where a tenth of the minute is left, which is for polls', async () => {
    const market = await startMarket(10)
    const { find, ledger } = contextOf(market)
    const poll = { cost: 1, purpose: 'poll' } as const
    await Promise.all(Array.from({ length: 216 }, () => ledger.reserve(poll)))
    expect(whyOf(await find(1, ['price', 'chart']))).toEqual({ price: 'minute', chart: 'minute' })
    expect(market.calls).toEqual([])
    expect(await ledger.reserve(poll)).toMatchObject({ ok: true })
  })

  it('that polls still need until the reset are left alone, fewer the nearer it is', async () => {
    const market = await startMarket(10)
    const early = contextOf(market, { units: 100, dayLeftMs: 80_000_000 })
    await early.ledger.reserve({ cost: 75, purpose: 'poll' })
    expect(whyOf(await early.find(1, ['chart']))).toEqual({ chart: 'budget' })
    const late = contextOf(market, { units: 100, dayLeftMs: 3_600_000 })
    await late.ledger.reserve({ cost: 75, purpose: 'poll' })
    expect(whyOf(await late.find(1, ['chart']))).toEqual({})
  })

  it("that polls need until the API's own day begins are left alone, where a refusal told of another day", async () => {
    const market = await startMarket(10)
    const early = contextOf(market, { units: 100, dayLeftMs: 80_000_000 })
    await early.ledger.countApiDay({ atMs: Date.now() + 3_600_000, used: 94 })
    expect(whyOf(await early.find(1, ['chart']))).toEqual({ chart: 'budget' })
    const spare = contextOf(market, { units: 100, dayLeftMs: 80_000_000 })
    await spare.ledger.countApiDay({ atMs: Date.now() + 3_600_000, used: 75 })
    expect(whyOf(await spare.find(1, ['chart']))).toEqual({})
  })

  it('are left alone of each of the two days as long as that one lasts', async () => {
    const market = await startMarket(10)
    const [hourMs, restMs] = [3_600_000, 43_200_000]
    const why = async (ours: { usedUnits: number; leftMs: number }, theirs: typeof ours) => {
      const { find, ledger } = contextOf(market, { units: 1_000, dayLeftMs: ours.leftMs })
      await ledger.reserve({ cost: ours.usedUnits, purpose: 'poll' })
      await ledger.countApiDay({ atMs: Date.now() + theirs.leftMs, used: theirs.usedUnits })
      return whyOf(await find(1, ['chart']))
    }
    const spent = { chart: 'budget' }
    // By the slowest pace polls need 153 units of half a day, and 16 of an hour.
    expect(await why({ usedUnits: 900, leftMs: hourMs }, { usedUnits: 500, leftMs: restMs })).toEqual({})
    expect(await why({ usedUnits: 900, leftMs: restMs }, { usedUnits: 500, leftMs: hourMs })).toEqual(spent)
    expect(await why({ usedUnits: 500, leftMs: restMs }, { usedUnits: 900, leftMs: hourMs })).toEqual({})
    expect(await why({ usedUnits: 500, leftMs: hourMs }, { usedUnits: 900, leftMs: restMs })).toEqual(spent)
  })

  it('that another source of the account needs for its polls are left alone, too', async () => {
    const market = await startMarket(10)
    const { find, ledger } = contextOf(market, { units: 1_000, dayLeftMs: 86_000_000, every: '15m' })
    await ledger.reserve({ cost: 680, purpose: 'poll' })
    expect(whyOf(await find(1, ['chart']))).toEqual({})
    await ledger.reserve({ cost: 70, purpose: 'poll' })
    expect(whyOf(await find(2, ['chart']))).toEqual({ chart: 'budget' })
  })

  it('of its share are a fifth until the last quarter of the day, and three tenths at its end', () => {
    expect([1, 0.25, 0.125, 0].map((left) => Math.round(100 * shareNow(left)))).toEqual([20, 20, 25, 30])
  })

  it('kept for polls follow their slowest pace and the time that is left', () => {
    const day = { key: '', startMs: 0, endMs: 86_400_000 }
    expect(unitsForPolls([{ share: 0.2 }], 2_000, 1, day)).toBe(603)
    expect(unitsForPolls([{ share: 0.2 }], 2_000, 0, day)).toBe(3)
    // In the last second.
    expect(unitsForPolls([{ everyMs: 60_000 }], 2_000, 1 / 86_400, day)).toBe(4)
    expect(unitsForPolls([{ everyMs: 60_000 }], 2_000, 0.5, day)).toBe(823)
    expect(unitsForPolls([{ everyMs: 1_000 }], 50, 1, day)).toBe(50)
    const two = [{ everyMs: 60_000 }, { everyMs: 120_000 }]
    expect(unitsForPolls(two, 4_000, 0.5, day)).toBe(720 + 360 + 203)
    // A share of what the fixed pace leaves.
    expect(unitsForPolls([{ share: 0.2 }, { everyMs: 60_000 }], 2_000, 0.5, day)).toBe(56 + 720 + 103)
    expect(unitsForPolls([{ share: 0.2 }, { everyMs: 54_000 }], 2_000, 1, day)).toBe(80 + 1_600 + 203)
    expect([burstUnits(2_000), burstUnits(10)]).toEqual([20, 10])
  })
})
