import { describe, expect, it } from 'vitest'
import { looksForeign, witnessPages } from '../../src/walk/foreign-feed.ts'

const lastCompleteMs = Date.parse('2026-11-21T09:00:00Z')
const nowMs = lastCompleteMs + 120_000
const memory = { lastCompleteMs, total: 250 }
const old = Array<number>(100).fill(lastCompleteMs - 3_600_000)
const recent = Array<number>(100).fill(lastCompleteMs + 60_000)
const unknown = Array<'new'>(100).fill('new')
const page = (number: number, total: number) => ({
  page: number,
  perPage: 100,
  total,
  lastPage: Math.ceil(total / 100),
  rows: [],
})

describe('a feed looks foreign', () => {
  it('when rows of a time that was handled are all unknown', () => {
    expect(looksForeign(unknown, old, memory, nowMs)).toBe(true)
  })

  it.each([
    ['one of them is known', [...unknown.slice(1), 'covered' as const], old, memory],
    ['they were fired since: a burst', unknown, recent, memory],
    ['most of them were fired since', unknown, [...recent.slice(0, 60), ...old.slice(0, 40)], memory],
    ['nothing was complete yet', unknown, old, { ...memory, lastCompleteMs: null }],
    ['the feed was empty then', unknown, old, { ...memory, total: 0 }],
    ['they are too few to tell', unknown.slice(0, 4), old.slice(0, 4), memory],
    ['the clock was ahead then', unknown, old, { ...memory, lastCompleteMs: nowMs + 1 }],
    ['none has a date', unknown, Array<null>(100).fill(null), memory],
  ])('but not when %s', (_why, marks, dates, remembered) => {
    expect(looksForeign(marks, dates, remembered, nowMs)).toBe(false)
  })
})

describe('the pages that can speak for a feed', () => {
  it('are those where counting puts the rows that are known, and those beneath', () => {
    expect(witnessPages(page(1, 900), memory, 0)).toEqual([7, 8, 2, 3])
    expect(witnessPages(page(1, 250), memory, 0)).toEqual([2, 3])
    expect(witnessPages(page(1, 80), memory, 0)).toEqual([])
    // A feed that drops its oldest rows has not grown: where the known rows stand now, it does not tell.
    expect(witnessPages(page(1, 9_000), { ...memory, total: 9_000 }, 0)).toEqual([2, 3, 5, 17])
  })

  it('begin with the head for a page outside of a walk', () => {
    expect(witnessPages(page(3, 900), memory, 'outside walk')).toEqual([1, 7, 8, 4])
    expect(witnessPages(page(2, 250), memory, 'outside walk')).toEqual([1, 3])
  })

  it('go on beneath those that another poll asked, to the end of the feed', () => {
    expect(witnessPages(page(1, 900), memory, 2)).toEqual([3, 4, 5, 6])
    expect(witnessPages(page(1, 900), memory, 6)).toEqual([7, 8, 9])
    expect(witnessPages(page(1, 900), memory, 9)).toEqual([])
  })
})
