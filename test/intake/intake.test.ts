import { describe, expect, it } from 'vitest'
import { type ExaminedPage, jobsOf, sortRows } from '../../src/intake/intake.ts'
import { rawCharactersMax } from '../../src/store/walk/quarantine.ts'
import type { RowLookup } from '../../src/store/walk/walk-state.ts'
import type { FeedPage } from '../../src/walk/page.ts'
import type { Mark } from '../../src/walk/walk.ts'
import { MemoryFeed, type MemoryRow, rigStartMs, toFeedRow } from './memory-rig.ts'

const feed = new MemoryFeed()
const desk = { sinks: [{ sink: 'desk', routes: [] }], withheld: [] }

describe('a page', () => {
  it('becomes jobs, oldest first, of the rows that are new and count', () => {
    const rows = [feed.row(3), feed.row(2), feed.row(1), feed.row(0)]
    const examined = examinedPage(rows, ['new', 'covered', 'new', 'new'], [true, true, true, false])
    const sorted = sortRows(examined, true)
    expect(sorted.alerts.map(({ id }) => id)).toEqual([rows[2]?.id, rows[0]?.id])
    const jobs = jobsOf(sorted.alerts, [desk, desk], new Map(), { seenAtMs: rigStartMs, page: 3 })
    expect(jobs.map(({ alert, seenAtMs, page }) => [alert.id, seenAtMs, page])).toEqual([
      [rows[2]?.id, rigStartMs, 3],
      [rows[0]?.id, rigStartMs, 3],
    ])
    expect(sorted).toMatchObject({ passedOver: 1, shown: [rows[1]?.key] })
    expect(sorted.mark).toEqual([rows[3]?.key, rows[2]?.key, rows[0]?.key])
  })

  it('gives each target of a sink a job, and tells it what was held back before', () => {
    const targets = new Map([['mail', ['a', 'b']]])
    const { alerts } = sortRows(examinedPage([feed.row(1)], ['new'], [true]), true)
    const shares = [
      { sink: 'mail', routes: ['night', 'all'], heldBack: 3 },
      { sink: 'desk', routes: [] },
    ]
    const jobs = jobsOf(alerts, [{ sinks: shares, withheld: [] }], targets, { seenAtMs: rigStartMs })
    expect(jobs.map(({ sink, target, heldBack }) => [sink, target, heldBack])).toEqual([
      ['mail', 'a', 3],
      ['mail', 'b', 3],
      ['desk', undefined, undefined],
    ])
    expect(jobs[0]?.routes).toEqual(['night', 'all'])
    expect(jobs[2]).not.toHaveProperty('target')
    expect(jobs[2]).not.toHaveProperty('heldBack')
  })

  it('of unknown place leaves rows unmarked that do not count', () => {
    const rows = [feed.row(1), feed.row(0)]
    const examined = examinedPage(rows, ['new', 'new'], [true, false])
    const sorted = sortRows(examined, false)
    expect(sorted).toMatchObject({ mark: [rows[0]?.key], passedOver: 0 })
    expect(sorted.fired).toHaveLength(1)
  })

  it('tells firing times, and takes now for a row without one once the first walk is done', () => {
    const undated = [{ inScope: true, old: false, firedAtMs: null }]
    const examined = { ...examinedPage([feed.row(1)], ['new'], [true]), rowScopes: undated }
    expect(sortRows(examined, true).fired).toEqual([])
    const facts = { ...examined.looked.facts, lastCompleteMs: 1 }
    const later = { ...examined, looked: { ...examined.looked, facts } }
    expect(sortRows(later, true).fired).toMatchObject([{ firedAtMs: rigStartMs, passedOver: false }])
  })

  it('sets rows aside that cannot be read, cut to a bounded length', () => {
    const examined = examinedPage([feed.bad()], ['new'], [true])
    const huge: ExaminedPage = {
      ...examined,
      page: {
        ...examined.page,
        rows: [{ ok: false, key: 'raw-x', raw: 'x'.repeat(10 ** 6), reason: 'row' }],
      },
    }
    const [entry] = sortRows(huge, true).quarantine
    expect(entry).toMatchObject({ key: 'raw-x', reason: 'row', atMs: rigStartMs })
    expect(entry?.raw).toHaveLength(rawCharactersMax)
  })
})

function examinedPage(
  rows: readonly MemoryRow[],
  marks: readonly Mark[],
  inScope: readonly boolean[],
): ExaminedPage {
  const page: FeedPage = { page: 1, perPage: 100, total: rows.length, lastPage: 1, rows: rows.map(toFeedRow) }
  const facts = {
    scope: { kind: 'all' as const },
    lastCompleteMs: null,
    total: null,
    expected: null,
    forgottenMs: 0,
    createdMs: 0,
    passedOver: 0,
    unrouted: 0,
  }
  const known = { id: 'x', replacedIds: [], version: 0, stretches: [], runs: 0, marked: 0, facts }
  const looked: RowLookup = { ...known, marks, quarantined: marks.map(() => false), server: '' }
  return {
    page,
    nowMs: rigStartMs,
    looked,
    rowScopes: inScope.map((counts) => ({ inScope: counts, old: !counts, firedAtMs: 1 })),
  }
}
