import { describe, expect, it } from 'vitest'
import type { FeedPage } from '../../src/walk/page.ts'
import { pageAfter, type Stretch } from '../../src/walk/stretch.ts'
import {
  decideHead,
  decideNext,
  decideOutsideWalk,
  type Mark,
  type PageDecision,
  type PageView,
} from '../../src/walk/walk.ts'

/** Pages of five rows; a row is named after its place unless the test names it. */
function view(
  page: number,
  total: number,
  marks: readonly Mark[],
  more: Partial<PageView> & { keys?: string[] } = {},
): PageView {
  const perPage = 5
  const rows = marks.map((_mark, index) => {
    const key = more.keys?.[index] ?? `row-${(page - 1) * perPage + index}`
    return { ok: false as const, key, raw: null, reason: '' }
  })
  const lastPage = Math.max(1, Math.ceil(total / perPage))
  const feedPage: FeedPage = { page, perPage, total, lastPage, rows }
  return { page: feedPage, marks, old: more.old ?? marks.map(() => false) }
}

const fresh: Mark[] = ['new', 'new', 'new', 'new', 'new']
const none = { stretches: [], runs: 3 }
const stretch = (run: number, end: number, total: number, frontier = `frontier-${run}`): Stretch => ({
  run,
  frontier,
  end,
  total,
})

describe('the head', () => {
  it('with a covered row is all there is to read', () => {
    const decision = decideHead(view(1, 50, ['new', 'new', 'covered', 'covered', 'covered']), none)
    expect(decision).toMatchObject({ rowsBecome: 'covered', next: { kind: 'end', reason: 'caught_up' } })
    expect(decision.stretches).toEqual([])
  })

  it('of seen rows below which something may be unknown is no end', () => {
    const decision = decideHead(view(1, 50, [0, 0, 2, 2, 2]), none)
    expect(decision).toMatchObject({ rowsBecome: 4, next: { kind: 'read', page: 2 } })
  })

  it('without a known row opens a stretch with a number of its own', () => {
    const decision = decideHead(view(1, 50, fresh), none)
    expect(decision.rowsBecome).toBe(4)
    expect(decision.stretches).toEqual([{ run: 4, frontier: 'row-4', end: 5, total: 50 }])
    expect(decision.next).toEqual({ kind: 'read', page: 2 })
  })

  it('above four open stretches drops the shortest, be it the head that was broken off last or not', () => {
    const open = [stretch(9, 125, 300), stretch(7, 222, 300), stretch(4, 252, 300), stretch(2, 277, 300)]
    const decision = decideHead(view(1, 310, fresh), { stretches: open, runs: 9 })
    expect(decision.stretches.map(({ run }) => run)).toEqual([10, 9, 7, 4])
    const short = [stretch(9, 10, 300), ...open.slice(1)]
    const next = decideHead(view(1, 310, fresh), { stretches: short, runs: 9 })
    expect(next.stretches.map(({ run }) => run)).toEqual([10, 7, 4, 2])
  })

  it('that is the whole feed ends every stretch, and covers only what it shows', () => {
    const decision = decideHead(view(1, 5, fresh), {
      stretches: [stretch(2, 10, 20), stretch(1, 15, 20)],
      runs: 2,
    })
    expect(decision).toMatchObject({ rowsBecome: 'covered', finished: [], stretches: [] })
    expect(decision.next).toEqual({ kind: 'end', reason: 'end_of_feed' })
  })

  it('that is empty changes nothing, since it may be a slip of the feed', () => {
    const open = [stretch(2, 10, 20)]
    const decision = decideHead(view(1, 0, []), { stretches: open, runs: 2 })
    expect(decision).toMatchObject({ rowsBecome: 0, finished: [], stretches: open })
    expect(decision.next).toEqual({ kind: 'end', reason: 'empty_feed' })
  })

  it('that meets an open stretch goes on at its frontier', () => {
    const open = stretch(2, 30, 50)
    const decision = decideHead(view(1, 53, ['new', 'new', 'new', 2, 2]), { stretches: [open], runs: 2 })
    expect(decision).toMatchObject({ rowsBecome: 2, joins: [], stretches: [open] })
    // 30 rows stood above the place, and three more do now.
    expect(decision.next).toEqual({ kind: 'read', page: 7 })
  })

  it('that holds the frontier of a stretch counts its place anew', () => {
    const open = stretch(2, 3, 50, 'row-3')
    const decision = decideHead(view(1, 51, ['new', 2, 2, 2, 'new']), { stretches: [open], runs: 2 })
    expect(decision.stretches).toEqual([{ run: 2, frontier: 'row-4', end: 5, total: 51 }])
    expect(decision.next).toEqual({ kind: 'read', page: 2 })
  })

  it('that does not reach an open stretch is put above it, and both are kept', () => {
    const open = stretch(2, 30, 50)
    const decision = decideHead(view(1, 60, fresh), { stretches: [open], runs: 2 })
    expect(decision.stretches.map(({ run }) => run)).toEqual([3, 2])
  })

  it('with a covered row goes on with a stretch that it did not meet', () => {
    const open = stretch(2, 30, 50)
    const decision = decideHead(view(1, 50, ['new', 'covered', 'covered', 'covered', 'covered']), {
      stretches: [open],
      runs: 2,
    })
    expect(decision).toMatchObject({ rowsBecome: 'covered', finished: [], stretches: [open] })
    expect(decision.next).toEqual({ kind: 'read', page: 7 })
  })

  it('trusts no covered row above rows of an open stretch', () => {
    const open = stretch(2, 30, 50)
    const decision = decideHead(view(1, 50, ['covered', 2, 2, 2, 2]), { stretches: [open], runs: 2 })
    expect(decision).toMatchObject({ rowsBecome: 2, finished: [], stretches: [open] })
  })

  it('that ends in rows from before the scope is the end', () => {
    const old = [false, false, true, true, true]
    const decision = decideHead(view(1, 50, fresh, { old }), none)
    expect(decision).toMatchObject({ rowsBecome: 'covered', next: { kind: 'end', reason: 'start_bound' } })
  })

  it('takes a row without a date for no evidence of where the scope begins', () => {
    expect(decideHead(view(1, 50, fresh, { old: [false, false, false, false, null] }), none).next.kind).toBe(
      'read',
    )
    expect(decideHead(view(1, 50, fresh, { old: [null, null, null, null, null] }), none).next.kind).toBe(
      'end',
    )
  })
})

describe('a later page', () => {
  const progress = { lost: 0, repeats: 0, counted: 50, total: 50 }

  it('begins exactly after the frontier while the total stands: it is next', () => {
    const known = { stretches: [stretch(4, 5, 50)], runs: 4 }
    const decision = decideNext(view(2, 50, fresh), known, progress)
    expect(decision.stretches).toEqual([{ run: 4, frontier: 'row-9', end: 10, total: 50 }])
    expect(decision).toMatchObject({ proven: true, rowsBecome: 4, next: { kind: 'read', page: 3 } })
  })

  it('holds a row of the stretch: what follows the last of them is next', () => {
    const known = { stretches: [stretch(4, 5, 50, 'row-7')], runs: 4 }
    const decision = decideNext(view(2, 53, [4, 4, 4, 'new', 'new']), known, progress)
    expect(decision).toMatchObject({ proven: true, rowsBecome: 4, next: { kind: 'read', page: 3 } })
  })

  it('with a covered row beneath finishes the stretch, and covers its rows', () => {
    const known = { stretches: [stretch(4, 5, 50)], runs: 4 }
    const decision = decideNext(view(2, 50, ['new', 'new', 'covered', 'covered', 'covered']), known, progress)
    expect(decision).toMatchObject({ rowsBecome: 'covered', finished: [4], stretches: [] })
    expect(decision.next).toEqual({ kind: 'end', reason: 'caught_up' })
  })

  it('joins what the head left to the older stretch that it reaches', () => {
    const known = { stretches: [stretch(4, 5, 50), stretch(2, 35, 50)], runs: 4 }
    const decision = decideNext(view(2, 50, ['new', 'new', 2, 2, 2]), known, progress)
    expect(decision).toMatchObject({
      rowsBecome: 2,
      joins: [{ from: 4, to: 2 }],
      stretches: [stretch(2, 35, 50)],
    })
    expect(decision.next).toEqual({ kind: 'read', page: 8 })
  })

  it('after rows were deleted is no proof: nothing is covered, and it is read again, then a page above', () => {
    const known = { stretches: [stretch(4, 10, 50)], runs: 4 }
    const decision = decideNext(view(3, 48, fresh), known, progress)
    expect(decision).toMatchObject({ proven: false, rowsBecome: 0, finished: [], stretches: known.stretches })
    expect(decision.next).toEqual({ kind: 'read', page: 3 })
    const again = decideNext(view(3, 48, fresh), known, decision.progress)
    expect(again.next).toEqual({ kind: 'read', page: 2 })
  })

  it('of a server that lacks rows is read again, and goes on with the answer of the one that was counted with', () => {
    const known = { stretches: [stretch(4, 10, 50)], runs: 4 }
    const stale = decideNext(view(3, 38, fresh), known, progress)
    expect(stale.next).toEqual({ kind: 'read', page: 3 })
    const decision = decideNext(view(3, 50, fresh), known, stale.progress)
    expect(decision).toMatchObject({ proven: true, progress: { lost: 0 }, next: { kind: 'read', page: 4 } })
  })

  it.each([
    ['three servers, of which two lack rows', [38, 28]],
    ['ten servers, of which nine lack rows', [38, 28, 46, 17, 39, 29, 47, 18, 37]],
    ['a feed whose total is another one at each read', [51, 49]],
  ])('of %s, in turn, is asked for until the one answers that was counted with', (_what, totals) => {
    const known = { stretches: [stretch(4, 10, 50)], runs: 4 }
    let step: Pick<PageDecision, 'next' | 'progress'> = { next: { kind: 'read', page: 3 }, progress }
    for (const total of [...totals, 50]) {
      expect(step.next).toEqual({ kind: 'read', page: 3 })
      step = decideNext(view(3, total, fresh), known, step.progress)
    }
    expect(step).toMatchObject({ proven: true, next: { kind: 'read', page: 4 } })
  })

  it('of two servers that lack the same rows, in turn with a third, is counted with the one that has the stretch', () => {
    const known = { stretches: [stretch(4, 10, 50, 'row-9')], runs: 4 }
    const pages: number[] = []
    let step: Pick<PageDecision, 'next' | 'progress'> = { next: { kind: 'read', page: 3 }, progress }
    for (const total of [20, 20, 50, 20, 20, 50]) {
      if (step.next.kind === 'read') pages.push(step.next.page)
      const rows: Mark[] =
        total === 50 && step.next.kind === 'read' && step.next.page === 2 ? [4, 4, 4, 4, 4] : fresh
      step = decideNext(view(pages.at(-1) ?? 0, total, rows), known, step.progress)
    }
    expect(pages).toEqual([3, 3, 2, 3, 3, 3])
    expect(step).toMatchObject({ proven: true, next: { kind: 'read', page: 4 } })
  })

  it('inside the stretch is counted again at once, and never without end', () => {
    const known = { stretches: [stretch(4, 10, 50)], runs: 4 }
    let step: Pick<PageDecision, 'next' | 'progress'> = { next: { kind: 'read', page: 3 }, progress }
    const pages: number[] = []
    for (let total = 60; step.next.kind === 'read' && pages.length < 30; total += 10) {
      pages.push(step.next.page)
      step = decideNext(view(step.next.page, total, [4, 4, 4, 4, 4]), known, step.progress)
    }
    expect(pages.slice(0, 2)).toEqual([3, 4])
    expect(step.next).toEqual({ kind: 'end', reason: 'place_lost' })
  })

  it('inside the stretch a twentieth time is where it goes on, however far beneath it rows were filled in', () => {
    const [long, other] = [stretch(4, 10, 50), stretch(2, 40, 50)]
    const known = { stretches: [long, other], runs: 4 }
    const decision = decideNext(view(2, 90, [4, 4, 4, 4, 4]), known, { ...progress, lost: 19 })
    expect(decision.next).toEqual({ kind: 'end', reason: 'place_lost' })
    const counted = { run: 4, frontier: 'row-9', end: 10, total: 90 }
    expect(decision.stretches).toEqual([counted, other])
    expect(pageAfter(counted, { total: 90, perPage: 5, lastPage: 18 })).toBe(3)
  })

  it('steps back where counting leads to the same page again', () => {
    const known = { stretches: [stretch(4, 12, 50)], runs: 4 }
    const decision = decideNext(view(3, 50, fresh), known, progress)
    expect(decision.next).toEqual({ kind: 'read', page: 2 })
    expect(decision.progress.lost).toBe(1)
  })

  it('that is lost a twentieth time leaves the stretch to the next walk', () => {
    const known = { stretches: [stretch(4, 12, 50), stretch(2, 40, 50)], runs: 4 }
    const decision = decideNext(view(3, 50, fresh), known, { ...progress, lost: 19 })
    expect(decision.next).toEqual({ kind: 'end', reason: 'place_lost' })
    expect(decision.stretches.map(({ run }) => run)).toEqual([2])
    expect(decision.finished).toEqual([])
  })

  it('beyond the end, of a feed that shrank, is counted again', () => {
    const known = { stretches: [stretch(4, 20, 50)], runs: 4 }
    const short = decideNext(view(5, 18, []), known, progress)
    expect(short.next).toEqual({ kind: 'read', page: 5 })
    const decision = decideNext(view(5, 18, []), known, short.progress)
    expect(decision.next).toEqual({ kind: 'read', page: 2 })
    const end = decideNext(view(4, 18, [4, 4, 4]), known, decision.progress)
    expect(end).toMatchObject({ finished: [4], next: { kind: 'end', reason: 'end_of_feed' } })
  })

  it('without rows where there should be some ends the poll and proves nothing', () => {
    const known = { stretches: [stretch(4, 5, 50)], runs: 4 }
    const decision = decideNext(view(2, 50, []), known, progress)
    expect(decision).toMatchObject({ finished: [], stretches: known.stretches })
    expect(decision.next).toEqual({ kind: 'end', reason: 'empty_page' })
  })

  it('finds nothing to go on with when another poller has finished', () => {
    expect(decideNext(view(2, 50, fresh), none, progress).next).toEqual({ kind: 'end', reason: 'raced' })
  })
})

describe('the place after a stretch', () => {
  it.each([
    ['as it was counted', 50, 3],
    ['deeper by what was added', 57, 4],
    ['on the frontier itself where only that can prove it', 55, 3],
    ['higher by what was removed', 44, 2],
    ['never above page 2', 10, 2],
    ['never beyond the last page', 200, 20],
  ])('stands %s', (_what, total, expected) => {
    const page = { total, perPage: 5, lastPage: total === 200 ? 20 : Math.ceil(total / 5) }
    expect(pageAfter(stretch(1, 10, 50), page)).toBe(expected)
  })
})

describe('a page outside of any walk', () => {
  it('is covered as a whole by one covered row, and by nothing else', () => {
    expect(decideOutsideWalk(['new', 'new', 'covered', 3, 0])).toBe('covered')
    expect(decideOutsideWalk(['new', 3, 0, 'new', 'new'])).toBe(0)
  })
})
