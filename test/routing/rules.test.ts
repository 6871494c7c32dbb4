import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFeedClient } from '../../src/feed/client.ts'
import type { AlertRule } from '../../src/feed/wire.ts'
import { Secret } from '../../src/lib/secret.ts'
import { createRuleBook, type RuleBookOptions } from '../../src/routing/rules.ts'
import { type SandboxOptions, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { createRuleStore } from '../../src/store/source/rules.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { clockAt } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { testFolder } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { connect, startSandbox } from '../support/sandbox.ts'

const server = useRedis()
const hourMs = 3_600_000
const dayMs = 86_400_000
const dayStartMs = Math.floor(Date.now() / dayMs) * dayMs
const day = { key: 'today', startMs: dayStartMs - hourMs, endMs: dayStartMs + 25 * hourMs }

async function rig(
  options: Partial<RuleBookOptions> & { unitsPerDay?: number; sandbox?: SandboxOptions } = {},
) {
  const sandbox = await startSandbox(options.sandbox)
  const [prefix, redis] = [freshPrefix(), server.client()]
  const time = { nowMs: dayStartMs + 12 * hourMs, wallAheadMs: 0 }
  const clock = { ...clockAt(() => time.nowMs), now: () => time.nowMs + time.wallAheadMs }
  const captured = captureLog()
  const metrics = createMetrics({ version: 'test', node: 'test' })
  const ledger = createLedger({
    ...{ redis, prefix, source: 'main', clock },
    unitsPerDay: options.unitsPerDay ?? 1_000,
    requestsPerMinute: 200,
    budgetDay: () => day,
  })
  const replica = (other: Partial<RuleBookOptions> = {}) =>
    createRuleBook({
      ...{
        source: 'main',
        feed: connect(sandbox),
        ledger,
        clock,
        log: captured.log,
        metrics,
        leaveUnits: async () => 100,
        onBudgetRefused: async () => {},
      },
      store: createRuleStore({ redis, prefix, source: 'main' }),
      ...options,
      ...other,
    })
  const reads = () => sandbox.requests.filter(({ path }) => path === '/api/v1/alerts').length
  return { sandbox, ledger, time, captured, metrics, replica, book: replica(), reads }
}

describe('the rules of an account', () => {
  it('are not read, and cost nothing, while the file of the token is empty', async () => {
    const file = join(testFolder(), 'token')
    writeFileSync(file, '')
    const { sandbox, ledger, time, replica, reads } = await rig()
    const feed = createFeedClient({ source: 'main', baseUrl: sandbox.url, token: Secret.fromFile(file) })
    onTestFinished(() => feed.close())
    const book = replica({ feed })
    const anew = { pagesMax: 1, signal: new AbortController().signal }
    expect([await book.readAnew(anew), book.lastReading()]).toEqual([true, undefined])
    expect([reads(), (await ledger.used(day)).used]).toEqual([0, 0])
    writeFileSync(file, sandboxToken)
    time.nowMs += 60_000
    await book.readAnew(anew)
    expect([reads(), (await ledger.used(day)).used]).toEqual([1, 1])
  })

  it('are read once, for a unit, and remembered by every replica', async () => {
    const { sandbox, book, replica, reads, metrics } = await rig()
    const [rule] = sandbox.rules
    const id = String(rule?.id)
    expect(book.ruleOf(id)).toBeUndefined()
    await book.prepare([id])
    await book.prepare([id])
    expect(book.ruleOf(id)).toMatchObject({
      name: [rule?.name],
      kind: [rule?.kind],
      isActive: [String(rule?.isActive)],
    })
    expect(reads()).toBe(1)
    const { values } = await metrics.budgetUnits.get()
    expect(values).toEqual([{ labels: { source: 'main', purpose: 'rules' }, value: 1 }])
    const other = replica()
    await other.prepare([id])
    expect([other.ruleOf(id), reads()]).toEqual([book.ruleOf(id), 1])
  })

  it('that a reading does not show are kept until the next one does not show them either', async () => {
    const rule = (id: number) => ({ id, name: `rule ${id}` }) as AlertRule
    let shown = [rule(2), rule(1)]
    const rules = async () => ({
      ...{ page: 1, perPage: 100, total: shown.length, lastPage: 1, skipped: 0, rules: shown },
    })
    const { replica, time } = await rig({ feed: { rules, tokenTrouble: () => undefined } })
    const readAnew = async () => {
      time.nowMs += hourMs
      const book = replica()
      await book.readAnew({ pagesMax: 1, signal: new AbortController().signal })
      return [book.lastReading()?.isWhole, book.ruleOf('1')?.name, book.ruleOf('2')?.name]
    }
    expect(await readAnew()).toEqual([true, ['rule 1'], ['rule 2']])
    shown = []
    expect(await readAnew()).toEqual([false, ['rule 1'], ['rule 2']])
    shown = [rule(2)]
    expect(await readAnew()).toEqual([true, undefined, ['rule 2']])
    shown = [rule(2), rule(1)]
    expect(await readAnew()).toEqual([true, ['rule 1'], ['rule 2']])
  })

  it('are kept in little room, however long their texts are', async () => {
    const [long, config] = ['ف'.repeat(20_000), { levels: Array.from({ length: 5_000 }, (_, at) => at) }]
    const rule = { id: 1, name: long, disabledReason: long, config, symbol: 'فولاد' } as AlertRule
    const rules = async () => ({ page: 1, perPage: 100, total: 1, lastPage: 1, skipped: 0, rules: [rule] })
    const store = { load: async () => undefined, save: async (kept: unknown) => void saved.push(kept) }
    const saved: unknown[] = []
    const { book } = await rig({ feed: { rules, tokenTrouble: () => undefined }, store })
    await book.prepare(['1'])
    expect(book.ruleOf('1')).toMatchObject({ symbol: ['فولاد'], config: [] })
    expect(JSON.stringify(saved).length).toBeLessThan(2_000)
  })

  it('are read again when an alert names an unknown one, but not for one that there is not', async () => {
    const { sandbox, book, reads } = await rig()
    await book.prepare([String(sandbox.rules[0]?.id)])
    await book.prepare(['999999'])
    await book.prepare(['999999'])
    expect([reads(), book.ruleOf('999999')]).toEqual([2, undefined])
  })

  it('are read anew after an hour', async () => {
    const { sandbox, book, reads, time } = await rig()
    const id = String(sandbox.rules[0]?.id)
    await book.prepare([id])
    time.nowMs += hourMs - 1
    await book.prepare([id])
    expect(reads()).toBe(1)
    time.nowMs += 1
    await book.prepare([id])
    expect(reads()).toBe(2)
  })

  it('are each read once, as shown last, where the list moves on between two pages', async () => {
    const row = (id: number, isArmed: boolean): AlertRule => ({ id, isArmed, name: null }) as AlertRule
    const pages = [
      [row(3, true), row(2, false)],
      [row(2, true), row(1, true)],
    ]
    const rules = async (page: number) => {
      const shown = { page, perPage: 100, total: 103, lastPage: pages.length, skipped: 0 }
      return { ...shown, rules: pages[page - 1] ?? [] }
    }
    const { book } = await rig({ feed: { rules, tokenTrouble: () => undefined } })
    expect(await book.readAnew({ pagesMax: 2, signal: new AbortController().signal })).toBe(true)
    const { rules: read, isWhole } = book.lastReading() ?? {}
    expect(read?.map(({ id, isArmed }) => [id, isArmed])).toEqual([
      [3, true],
      [2, true],
      [1, true],
    ])
    expect(isWhole).toBe(false)
  })

  it('are read as far as an hour has units for them, where the list is longer, also by the first alert', async () => {
    const rules = async (page: number) => {
      const shown = { page, perPage: 100, total: 500, lastPage: 5, skipped: 0 }
      return { ...shown, rules: [{ id: 6 - page, disabledReason: 'quota' } as unknown as AlertRule] }
    }
    const feed = { rules, tokenTrouble: () => undefined }
    const { book, replica } = await rig({ feed, unitsPerHour: 3 })
    expect(await book.readAnew({ pagesMax: 30, signal: new AbortController().signal })).toBe(true)
    const other = replica()
    await other.prepare(['1'])
    for (const reading of [book.lastReading(), other.lastReading()]) {
      expect(reading).toMatchObject({ pages: 3, isWhole: false })
      expect(reading?.rules.map(({ id }) => id)).toEqual([5, 4, 3])
    }
  })

  it('are counted also where they are on pages that were not read', async () => {
    const page = (number: number, total: number) => {
      const shown = { page: number, perPage: 100, total, lastPage: Math.ceil(total / 100), skipped: 1 }
      return { ...shown, rules: [{ id: 9 - number } as unknown as AlertRule] }
    }
    let total = 420
    const feed = { rules: async (number: number) => page(number, total), tokenTrouble: () => undefined }
    const { book } = await rig({ feed })
    const read = async (pagesMax: number) => {
      await book.readAnew({ pagesMax, signal: new AbortController().signal })
      return book.lastReading()?.unread
    }
    expect(await read(3)).toBe(120)
    expect(await read(5)).toBe(0)
    total = 300
    expect(await read(3)).toBe(0)
  })

  it('are asked for by one call at a time', async () => {
    const { sandbox, book, reads } = await rig()
    const id = String(sandbox.rules[0]?.id)
    await Promise.all([book.prepare([id]), book.prepare([id]), book.prepare([id])])
    expect(reads()).toBe(1)
  })
})

describe('the budget', () => {
  it('is left to the polls: without spare units nothing is read, and later it is tried again', async () => {
    const { sandbox, book, ledger, reads, time } = await rig({ unitsPerDay: 110 })
    await ledger.reserve({ cost: 10, purpose: 'poll' })
    const id = String(sandbox.rules[0]?.id)
    await book.prepare([id])
    await book.prepare([id])
    expect([reads(), book.ruleOf(id)]).toEqual([0, undefined])
    expect(await ledger.used(day)).toMatchObject({ used: 10 })
    time.nowMs += 61_000
    await book.prepare([id])
    expect(reads()).toBe(0)
  })

  it('is not eaten by rules that never come: so many units an hour, and no more', async () => {
    const { book, reads, time } = await rig({ unitsPerHour: 3 })
    for (let id = 1_000_000; id < 1_000_010; id += 1) await book.prepare([String(id)])
    expect(reads()).toBe(3)
    time.nowMs += hourMs
    await book.prepare(['1000010'])
    expect(reads()).toBe(4)
  })
})

describe('a wall clock that is set a day back or ahead', () => {
  it.each([-dayMs, dayMs])('keeps no pause longer or shorter (%d ms)', async (byMs) => {
    const { book, reads, time } = await rig({ unitsPerHour: 2 })
    const ask = async (from: number) => {
      for (let id = from; id < from + 4; id += 1) await book.prepare([String(id)])
      return reads()
    }
    expect(await ask(1_000_000)).toBe(2)
    time.wallAheadMs = byMs
    expect(await ask(2_000_000)).toBe(2)
    time.nowMs += hourMs
    expect(await ask(3_000_000)).toBe(4)
  })

  it.each([-dayMs, dayMs])('keeps nobody from asking again after a failure (%d ms)', async (byMs) => {
    const { sandbox, book, reads, time } = await rig()
    const id = String(sandbox.rules[0]?.id)
    sandbox.fault({ kind: 'status', status: 500, endpoint: 'alerts' })
    await book.prepare([id])
    time.wallAheadMs = byMs
    await book.prepare([id])
    expect(reads()).toBe(1)
    time.nowMs += 61_000
    await book.prepare([id])
    expect(book.ruleOf(id)).toBeDefined()
  })

  it('makes rules old that were read in the future', async () => {
    const { sandbox, book, reads, time } = await rig()
    const id = String(sandbox.rules[0]?.id)
    await book.prepare([id])
    time.wallAheadMs = -dayMs
    await book.prepare([id])
    expect(reads()).toBe(2)
  })
})

describe('an API that fails', () => {
  it('leaves the rules unknown, is left alone for a while, and never throws', async () => {
    const { sandbox, book, reads, time, captured } = await rig()
    const id = String(sandbox.rules[0]?.id)
    sandbox.fault({ kind: 'status', status: 500, endpoint: 'alerts' })
    await book.prepare([id])
    await book.prepare([id])
    expect([reads(), book.ruleOf(id)]).toEqual([1, undefined])
    expect(captured.with('the rules cannot be read')).toHaveLength(1)
    time.nowMs += 61_000
    await book.prepare([id])
    expect(book.ruleOf(id)).toBeDefined()
  })

  it('that says 429 is held off for everybody', async () => {
    const { sandbox, book, ledger } = await rig()
    sandbox.fault({ kind: 'status', status: 429, retryAfter: '30', endpoint: 'alerts' })
    await book.prepare([String(sandbox.rules[0]?.id)])
    expect((await ledger.currentHold())?.limit).toBe('minute')
  })

  it('that says 429 for thousands of years is held off for a budget day at most', async () => {
    const { sandbox, book, ledger, time } = await rig()
    sandbox.fault({ kind: 'status', status: 429, retryAfter: '99999999999', endpoint: 'alerts' })
    await book.prepare([String(sandbox.rules[0]?.id)])
    expect((await ledger.currentHold())?.untilMs).toBeLessThanOrEqual(time.nowMs + 25 * hourMs)
  })
})
