import { describe, expect, it } from 'vitest'
import { FeedError } from '../../src/feed/errors.ts'
import type { AlertRule, RulesPage } from '../../src/feed/wire.ts'
import { silentRules } from '../../src/routing/rule-health.ts'
import { createRuleBook } from '../../src/routing/rules.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { createRuleStore } from '../../src/store/source/rules.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { clockAt } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const server = useRedis()
const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000]
const startMs = Math.floor(Date.now() / dayMs) * dayMs + dayMs / 2

/** The rules 600 to 1, newest first, on six pages; `onPage` comes before each answer. */
function rig(onPage: (page: number) => unknown = () => {}) {
  const time = { nowMs: startMs }
  const clock = clockAt(() => time.nowMs)
  const [prefix, redis] = [freshPrefix(), server.client()]
  const pages: number[] = []
  const dead = new Set<number>()
  const ids = Array.from({ length: 600 }, (_, index) => 600 - index)
  const rules = async (page: number): Promise<RulesPage> => {
    pages.push(page)
    await onPage(page)
    // Each is evaluated every five minutes, but for those that were last two hours before the start.
    const last = (id: number) => (dead.has(id) ? startMs - 2 * hourMs : time.nowMs - minuteMs)
    const shown = ids.slice((page - 1) * 100, page * 100).map(
      (id) =>
        ({
          ...{ id, name: `rule ${id}`, lastEvaluatedAt: iso(last(id)) },
          nextEvaluationAt: iso(last(id) + 5 * minuteMs),
        }) as AlertRule,
    )
    return {
      page,
      perPage: 100,
      total: ids.length,
      lastPage: Math.ceil(ids.length / 100),
      skipped: 0,
      rules: shown,
    }
  }
  const [closing, captured] = [new AbortController(), captureLog()]
  const store = createRuleStore({ redis, prefix, source: 'main' })
  const book = createRuleBook({
    ...{
      source: 'main',
      clock,
      leaveUnits: async () => 0,
      onBudgetRefused: async () => {},
      feed: { rules, tokenTrouble: () => undefined },
    },
    ledger: createLedger({
      ...{ redis, prefix, source: 'main', clock, unitsPerDay: 10_000, requestsPerMinute: 10_000 },
      budgetDay: () => ({ key: 'today', startMs: startMs - dayMs, endMs: startMs + 3 * dayMs }),
    }),
    store,
    ...{
      closing: closing.signal,
      log: captured.log,
      metrics: createMetrics({ version: 'test', node: 'test' }),
    },
  })
  return { book, store, time, pages, ids, dead, closing, captured }
}

const iso = (ms: number) => new Date(ms).toISOString()
const silent = (rules: readonly Readonly<Record<string, unknown>>[] = []) =>
  silentRules(rules, () => true).map(({ id }) => id)
const fault = () => new FeedError('server_error', 'the API answers 500')
const anew = { pagesMax: 1, signal: new AbortController().signal }

describe('a list of rules that is read slowly', () => {
  it('is read to its end, once an hour', async () => {
    const { book, time, pages } = rig(() => {
      time.nowMs += 2_000
    })
    for (let alert = 0; alert < 5; alert += 1) {
      await book.prepare(['1'])
      time.nowMs += minuteMs
    }
    expect(pages).toEqual([1, 2, 3, 4, 5, 6])
    expect([book.ruleOf('1')?.name, book.lastReading()?.isWhole]).toEqual([['rule 1'], true])
  })

  it('is waited for no longer than ten seconds, and holds up no reading of what rules announce', async () => {
    const gate = Promise.withResolvers<void>()
    const { book, time, pages } = rig((page) => (page === 3 ? gate.promise : undefined))
    const first = book.prepare(['1'])
    await until('the third page is asked for', () => pages.length === 3)
    time.nowMs += 10_000
    await book.prepare(['1'])
    expect(await book.readAnew(anew)).toBe(true)
    expect([pages.at(-1), book.ruleOf('1')]).toEqual([3, undefined])
    gate.resolve()
    await first
    expect([pages, book.ruleOf('1')?.name]).toEqual([[1, 2, 3, 4, 5, 6], ['rule 1']])
  })

  it('goes on at the page that failed', async () => {
    let faults = 1
    const { book, time, pages } = rig((page) => {
      if (page === 4 && faults-- > 0) throw fault()
    })
    await book.prepare(['1'])
    time.nowMs += minuteMs
    await book.prepare(['1'])
    expect(pages).toEqual([1, 2, 3, 4, 4, 5, 6])
    expect(book.lastReading()).toMatchObject({ pages: 6, isWhole: true })
    expect(book.lastReading()?.rules).toHaveLength(600)
  })

  it('shows a rule that is late on whichever page it stands, also as it is stored', async () => {
    const { book, store, time, dead } = rig(() => {
      time.nowMs += 2_000
    })
    for (const id of [550, 150, 50]) dead.add(id)
    await book.prepare(['1'])
    expect(silent(book.lastReading()?.rules)).toEqual(['550', '150', '50'])
    expect(silent((await store.load())?.rows)).toEqual(['550', '150', '50'])
  })

  it('shows no rule as late whose page was read long before the others', async () => {
    let faults = 1
    const { book, store, time } = rig((page) => {
      if (page === 4 && faults-- > 0) throw fault()
    })
    await book.prepare(['1'])
    time.nowMs += 1.75 * hourMs
    await book.prepare(['1'])
    expect(book.lastReading()).toMatchObject({ pages: 6, isWhole: true })
    expect(silent(book.lastReading()?.rules)).toEqual([])
    expect(silent((await store.load())?.rows)).toEqual([])
  })

  it('shows what another reading has shown of its rules since it stopped', async () => {
    let faults = 0
    const { book, time, dead } = rig((page) => {
      if (page === 3 && faults-- > 0) throw fault()
    })
    await book.prepare(['1'])
    time.nowMs += 1.5 * hourMs
    faults = 1
    dead.add(550)
    await book.prepare(['1'])
    time.nowMs += 1.5 * hourMs
    dead.delete(550)
    await book.readAnew(anew)
    expect([book.lastReading()?.pages, silent(book.lastReading()?.rules)]).toEqual([1, []])
    time.nowMs += minuteMs
    await book.prepare(['1'])
    expect(book.lastReading()).toMatchObject({ pages: 6, isWhole: true, isOlder: false })
    expect(silent(book.lastReading()?.rules)).toEqual([])
  })

  it('begins anew where it stopped hours ago', async () => {
    let faults = 1
    const { book, time, pages } = rig((page) => {
      if (page === 4 && faults-- > 0) throw fault()
    })
    await book.prepare(['1'])
    time.nowMs += 3 * hourMs
    await book.prepare(['1'])
    expect(pages).toEqual([1, 2, 3, 4, 1, 2, 3, 4, 5, 6])
  })

  it('begins anew where all rules were read since it stopped', async () => {
    let faults = 1
    const { book, time, pages, ids } = rig((page) => {
      if (page === 4 && faults-- > 0) throw fault()
    })
    await book.prepare(['1'])
    time.nowMs += minuteMs
    ids.unshift(601)
    await book.readAnew({ ...anew, pagesMax: 7 })
    pages.splice(0)
    time.nowMs += hourMs
    await book.prepare(['601'])
    expect([pages, book.ruleOf('601')?.name]).toEqual([[1, 2, 3, 4, 5, 6, 7], ['rule 601']])
  })

  it('forgets nothing that another reading has shown since it stopped', async () => {
    let faults = 1
    const { book, time, pages, ids } = rig((page) => {
      if (page === 4 && faults-- > 0) throw fault()
    })
    await book.prepare(['1'])
    time.nowMs += minuteMs
    ids.unshift(601)
    await book.readAnew(anew)
    pages.splice(0)
    await book.prepare(['1'])
    expect([pages, book.ruleOf('601')?.name, book.ruleOf('1')?.name]).toEqual([
      [4, 5, 6, 7],
      ['rule 601'],
      ['rule 1'],
    ])
  })

  it('is read to its end over hours, where it is longer than two of them have units for', async () => {
    const { book, time, pages, ids } = rig()
    ids.splice(0, 600, ...Array.from({ length: 5_000 }, (_, index) => 5_000 - index))
    for (let hour = 0; hour < 3; hour += 1) {
      await book.prepare(['1'])
      time.nowMs += hourMs
    }
    expect([pages.length, book.ruleOf('1')?.name]).toEqual([50, ['rule 1']])
    expect(book.lastReading()).toMatchObject({ pages: 50, isWhole: true })
  })

  it('costs little where a page fails all day', async () => {
    const { book, time, pages } = rig((page) => {
      if (page === 4) throw fault()
    })
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      await book.prepare(['1'])
      time.nowMs += minuteMs
    }
    // Six pages an hour would be 144.
    expect(pages.length).toBeLessThan(100)
  })

  it('does not prove that there is no rule which is newer than its first page', async () => {
    let faults = 1
    const { book, time, pages, ids } = rig((page) => {
      if (page === 4 && faults-- > 0) throw fault()
    })
    await book.prepare(['1'])
    ids.unshift(601)
    time.nowMs += minuteMs
    await book.prepare(['601'])
    expect([book.ruleOf('601')?.name, pages]).toEqual([['rule 601'], [1, 2, 3, 4, 4, 5, 6, 7, 1]])
  })

  it('is read no further, and nothing is said of it, once its source is closed', async () => {
    const { book, pages, closing, captured } = rig((page) => {
      if (page !== 3) return
      closing.abort(new Error('closing'))
      throw fault()
    })
    await book.prepare(['1'])
    await book.prepare(['1'])
    expect([pages, captured.with('the rules cannot be read')]).toEqual([[1, 2, 3], []])
  })

  it('is not read again for each of several rules that are gone', async () => {
    const { book, pages } = rig()
    for (const id of ['1001', '1002', '1001', '1002', '1001']) await book.prepare([id])
    expect(pages).toHaveLength(12)
  })
})
