import { describe, expect, it } from 'vitest'
import type { PageAnswer } from '../../src/intake/poll-types.ts'
import { historyPages, readHistory } from '../../src/poller/spare.ts'

const cold = {
  wanted: 10,
  unitsLeft: 2_000,
  memory: 'fresh',
  historyRead: false,
  lastPages: 1,
  behind: false,
} as const

describe('pages of the past', () => {
  it.each([
    ['are bought below what the poll read, on a cold start', {}, { afterPage: 1, pagesMax: 10 }],
    [
      'are bought again when what was learned cannot be read',
      { memory: 'lost' },
      { afterPage: 1, pagesMax: 10 },
    ],
    ['are never more than a tenth of what is left', { unitsLeft: 35 }, { afterPage: 1, pagesMax: 3 }],
    [
      'go on where they were, with what is left of them',
      { unitsLeft: 500, lastPages: 1, begun: { afterPage: 7, pagesMax: 4 } },
      { afterPage: 7, pagesMax: 4 },
    ],
    ['are no more when all are read', { begun: { afterPage: 11, pagesMax: 0 } }, undefined],
    ['begin below a walk of several pages', { lastPages: 4 }, { afterPage: 4, pagesMax: 10 }],
    ['are not bought where the plan remembers', { memory: 'restored' }, undefined],
    ['are bought once', { historyRead: true }, undefined],
    ['wait for the first good poll', { lastPages: null }, undefined],
    ['wait for the end of a catch-up', { behind: true }, undefined],
    ['can be turned off', { wanted: 0 }, undefined],
    ['are not worth the last units of a day', { unitsLeft: 9 }, undefined],
  ] as const)('%s', (_, situation, allowance) => {
    expect(historyPages({ ...cold, ...situation })).toEqual(allowance)
  })
})

describe('reading the past', () => {
  const feed =
    (lastPage: number, asked: number[]) =>
    async (page: number): Promise<PageAnswer> => {
      asked.push(page)
      return {
        kind: 'page',
        page: { page, perPage: 100, total: lastPage * 100, lastPage, rows: [bad, row(page)] },
      }
    }

  it('goes on to its allowance and gives the firing times that can be read', async () => {
    const asked: number[] = []
    const history = await readHistory(feed(20, asked), { afterPage: 1, pagesMax: 3 }, nowMs)
    expect(asked).toEqual([2, 3, 4])
    expect(history).toEqual({ pages: 3, firedAtMs: [2_000, 3_000, 4_000], goesOn: false })
  })

  it('leaves out times that lie ahead', async () => {
    const ahead = await readHistory(feed(200, []), { afterPage: 119, pagesMax: 2 }, nowMs)
    expect(ahead).toEqual({ pages: 2, firedAtMs: [120_000], goesOn: false })
  })

  it('ends with the feed', async () => {
    const asked: number[] = []
    expect((await readHistory(feed(3, asked), { afterPage: 1, pagesMax: 10 }, nowMs)).pages).toBe(2)
    expect(asked).toEqual([2, 3])
  })

  it.each<[string, PageAnswer, boolean]>([
    ['the units are spent', { kind: 'refused', why: 'budget' }, false],
    ['a page failed', { kind: 'failed', error: new Error('500') }, false],
    ['the minute is used up', { kind: 'refused', why: 'minute' }, true],
    ['the API asked to wait', { kind: 'refused', why: 'hold' }, true],
    ['a poll is due', { kind: 'refused', why: 'rest' }, true],
  ])('ends where %s, and keeps what it has', async (_, answer, goesOn) => {
    const read = async (page: number) => (page < 4 ? feed(20, [])(page) : answer)
    expect(await readHistory(read, { afterPage: 1, pagesMax: 10 }, nowMs)).toEqual({
      pages: 2,
      firedAtMs: [2_000, 3_000],
      goesOn,
    })
  })
})

/** Nothing of these pages lies ahead, but for what a test puts there. */
const nowMs = 60_000

const bad = { ok: false, key: 'raw-1', raw: {}, reason: 'id: missing' } as const

function row(page: number) {
  const alert = { source: 'main', id: page, firedAtMs: page * 1_000 }
  return { ok: true, key: String(page), alert } as unknown as Extract<
    PageAnswer,
    { kind: 'page' }
  >['page']['rows'][number]
}
