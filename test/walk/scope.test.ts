import { describe, expect, it } from 'vitest'
import type { FeedPage, FeedRow } from '../../src/walk/page.ts'
import { type ScopeFacts, scopeOfRows, sinceBeneath } from '../../src/walk/scope.ts'
import type { Mark } from '../../src/walk/walk.ts'
import { MemoryFeed, toFeedRow } from '../intake/memory-rig.ts'

const startMs = Date.parse('2026-11-21T09:00:00.500Z')
const nowMs = startMs + 3_600_000
const feed = new MemoryFeed()

describe('startFrom: beginning', () => {
  it('takes every row', () => {
    expect(counts({ scope: { kind: 'all' } }, [-86_400_000, undated])).toEqual([true, true])
  })
})

describe('startFrom: an instant', () => {
  const scope = { kind: 'since' as const, sinceMs: startMs }

  it('takes what was fired at it or after, and what has no readable date', () => {
    expect(counts({ scope }, [1, 0, -1, undated])).toEqual([true, true, false, true])
  })

  it('gives a time without milliseconds the whole of its second', () => {
    expect(counts({ scope }, [-500, -1_500])).toEqual([true, false])
  })

  it('reads the date of a row that cannot be parsed otherwise', () => {
    const raw = (firedAt: unknown): FeedRow => ({ ok: false, key: 'raw-1', raw: { firedAt }, reason: 'kind' })
    const page = pageOf([raw('2026-11-20T00:00:00Z'), raw('2026-11-22T00:00:00Z'), raw(7), raw('yesterday')])
    expect(scopes(page, { scope }).map(({ inScope }) => inScope)).toEqual([false, true, true, true])
  })

  it('does not believe a date far in the future', () => {
    expect(scopes(pageOf([dated(2 * 86_400_000)]), { scope })[0]).toEqual({
      inScope: true,
      old: false,
      firedAtMs: null,
    })
  })
})

describe('startFrom: now', () => {
  const scope = { kind: 'from' as const, sinceMs: startMs, history: null }
  const later = { scope: { ...scope, history: 100 }, lastCompleteMs: startMs }

  it('passes over what the first poll shows, but for rows that were fired since', () => {
    expect(counts({ scope }, [1, -1, undated])).toEqual([true, false, false])
  })

  it('takes an old date for a late row when a known row stands beneath', () => {
    const rowScopes = scopes(pageOf([dated(-1), dated(-2), dated(-3)]), later, ['new', 5, 'new'])
    expect(rowScopes.map(({ inScope }) => inScope)).toEqual([true, false, false])
  })

  it('takes an old date for a late row when counting says that the feed has gained it', () => {
    const page = { ...pageOf([dated(-1), dated(-2)]), total: 101 }
    expect(scopes(page, later).map(({ inScope }) => inScope)).toEqual([true, false])
  })

  it('takes what has no readable date once the first walk is done', () => {
    expect(counts(later, [undated, -1])).toEqual([true, false])
  })

  it('lets nothing but dates speak where a sweep looks', () => {
    const page = pageOf([dated(-1), dated(-2), dated(1), feedRow(undated)])
    const rowScopes = scopeOfRows(page, ['new', 'covered', 'new', 'new'], facts(later), {
      nowMs,
      aside: true,
    })
    expect(rowScopes.map(({ inScope }) => inScope)).toEqual([false, false, true, false])
    // Rows that were filled in at the bottom of the feed make every row above them look gained.
    const filled = scopeOfRows(
      { ...page, total: 350 },
      page.rows.map(() => 'new'),
      facts(later),
      { nowMs, aside: true },
    )
    expect(filled.map(({ inScope }) => inScope)).toEqual([false, false, true, false])
  })

  it('begins after the last row of a first page whose dates lie ahead, and not a second later', () => {
    const begins = (ms: number, some: Partial<ScopeFacts>) => {
      const page = { ...pageOf([dated(7_200_000 + ms), dated(7_200_000 + ms)]), total: 300 }
      return sinceBeneath(page, scopes(page, { scope, ...some }), startMs, nowMs)
    }
    expect(begins(0, {})).toBe(startMs + 7_200_001)
    // A time without milliseconds means its whole second.
    expect(begins(500, {})).toBe(startMs + 7_201_500)
    // Where the feed was empty before, they are news.
    expect(begins(0, { lastCompleteMs: startMs, total: 0 })).toBe(startMs)
  })

  it('counts what the feed gained from the last complete walk on, and not from the first day', () => {
    const page = { ...pageOf([dated(-1), dated(-2)]), total: 201 }
    expect(scopes(page, { ...later, total: 200 }).map(({ inScope }) => inScope)).toEqual([true, false])
  })

  it('after a loss takes what stands on top without a date', () => {
    const lost = { scope: { ...scope, history: 100, beneath: 1 } }
    expect(counts(lost, [1, -1, undated, undated])).toEqual([true, false, true, false])
    expect(counts({ scope: { ...scope, history: 100 } }, [undated, undated])).toEqual([false, false])
    const deeper = { ...pageOf([feedRow(undated)]), page: 2 }
    expect(scopes(deeper, lost).map(({ inScope }) => inScope)).toEqual([false])
  })
})

describe('a firing time that cannot be true', () => {
  const impossible = [
    '1405-08-30T09:00:00Z',
    '0000-01-01T00:00:00Z',
    '1970-01-01T00:00:00Z',
    '9999-01-01T00:00:00Z',
  ]
  const page = pageOf(impossible.map((firedAt) => toFeedRow({ ...feed.row(0), firedAt })))

  it.each<Partial<ScopeFacts>>([
    { scope: { kind: 'all' } },
    { scope: { kind: 'since', sinceMs: startMs } },
    { scope: { kind: 'from', sinceMs: startMs, history: 500 }, lastCompleteMs: startMs },
    { scope: { kind: 'all' }, lastCompleteMs: startMs, forgottenMs: startMs },
  ])('leaves no row out of %j', (some) => {
    const rowScopes = scopes(page, some)
    expect(rowScopes).toEqual(page.rows.map(() => ({ inScope: true, old: false, firedAtMs: null })))
  })
})

describe('a memory that forgets', () => {
  it('does not send again what it may have seen long ago', () => {
    const forgetful = { scope: { kind: 'all' as const }, forgottenMs: startMs, lastCompleteMs: startMs }
    expect(counts(forgetful, [1, -1_000, undated])).toEqual([true, false, true])
    const late = scopes(pageOf([dated(-1_000), dated(1)]), forgetful, ['new', 'covered'])
    expect(late[0]?.inScope).toBe(false)
    const gained = scopes(
      { ...pageOf([dated(-1_000), dated(-1_000)]), total: 101 },
      { ...forgetful, total: 100 },
    )
    expect(gained.map(({ inScope }) => inScope)).toEqual([true, false])
  })

  it('sends nothing without a date from where no walk comes by', () => {
    const forgetful = { scope: { kind: 'all' as const }, forgottenMs: startMs, lastCompleteMs: startMs }
    const page = pageOf([feedRow(undated), dated(-1_000), dated(1)])
    const aside = scopeOfRows(page, ['new', 'new', 'covered'], facts(forgetful), { nowMs, aside: true })
    expect(aside.map(({ inScope }) => inScope)).toEqual([false, false, true])
    const fresh = scopeOfRows(page, ['new', 'new', 'covered'], facts({}), { nowMs, aside: true })
    expect(fresh.map(({ inScope }) => inScope)).toEqual([true, true, true])
  })
})

const undated = Symbol('undated')

function counts(some: Partial<ScopeFacts>, rows: readonly (number | typeof undated)[]): boolean[] {
  return scopes(pageOf(rows.map(feedRow)), some).map(({ inScope }) => inScope)
}

function scopes(
  page: FeedPage,
  some: Partial<ScopeFacts>,
  marks: readonly Mark[] = page.rows.map(() => 'new'),
) {
  return scopeOfRows(page, marks, facts(some), { nowMs, aside: false })
}

function facts(some: Partial<ScopeFacts>): ScopeFacts {
  return { scope: { kind: 'all' }, lastCompleteMs: null, total: null, forgottenMs: 0, ...some }
}

function feedRow(afterMs: number | typeof undated): FeedRow {
  return afterMs === undated ? toFeedRow({ ...feed.row(0), firedAt: 'some day' }) : dated(afterMs as number)
}

function dated(afterMs: number): FeedRow {
  return toFeedRow(feed.row(startMs + afterMs))
}

function pageOf(rows: readonly FeedRow[]): FeedPage {
  return { page: 1, perPage: 100, total: rows.length, lastPage: 1, rows }
}
