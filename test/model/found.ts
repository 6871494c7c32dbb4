import { type History, hourMs, type Turn } from './history.ts'

/** Histories that once broke a build that was meant to be right, each by what it did. They are lived again every time. */
export const found: readonly (readonly [what: string, history: History])[] = [
  [
    'a page read before another poller opened a stretch, and seen as the end of the feed, covered that stretch',
    {
      startFrom: 'beginning',
      late: false,
      before: 0,
      turns: [
        {
          pagesMax: 1,
          reads: [[{ kind: 'top', count: 1, jitter: 0 }]],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: null,
          flush: false,
        },
        {
          pagesMax: 1,
          reads: [[], [{ kind: 'top', count: 6, jitter: 0 }]],
          failAt: 3,
          failAfter: true,
          crash: false,
          rival: [false, true, true, true],
          flush: false,
        },
        { pagesMax: 1, reads: [], failAt: 4, failAfter: false, crash: false, rival: null, flush: false },
        { pagesMax: 1, reads: [], failAt: -1, failAfter: false, crash: false, rival: [false], flush: false },
      ],
    },
  ],
  [
    'a patch of history that was marked deep in the feed made the rows above it look like late ones',
    {
      startFrom: 'now',
      late: false,
      before: 7,
      turns: [
        {
          pagesMax: 1,
          reads: [[], [{ kind: 'top', count: 5, jitter: 0 }]],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: null,
          flush: false,
        },
        {
          pagesMax: 2,
          reads: [[], [{ kind: 'delete', at: 0, count: 6 }], [{ kind: 'bad' }]],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: null,
          flush: false,
        },
      ],
    },
  ],
  [
    'history that another poller marked meanwhile did the same',
    {
      startFrom: 'now',
      late: false,
      before: 7,
      turns: [
        { pagesMax: 1, reads: [], failAt: -1, failAfter: false, crash: false, rival: null, flush: false },
        {
          pagesMax: 1,
          reads: [
            [{ kind: 'delete', at: 0, count: 5 }],
            [
              { kind: 'top', count: 2, jitter: 0 },
              { kind: 'delete', at: 0, count: 3 },
            ],
          ],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: [false, true, true],
          flush: false,
        },
        { pagesMax: 1, reads: [], failAt: -1, failAfter: false, crash: false, rival: null, flush: false },
      ],
    },
  ],
  [
    'after a loss, a row without a date at the end of a page ended the walk',
    {
      startFrom: 'beginning',
      late: false,
      before: 0,
      turns: [
        {
          pagesMax: 1,
          reads: [[{ kind: 'top', count: 1, jitter: 0 }]],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: null,
          flush: false,
        },
        {
          pagesMax: 1,
          reads: [[{ kind: 'bad' }], [{ kind: 'top', count: 9, jitter: 0 }]],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: null,
          flush: false,
        },
        { pagesMax: 1, reads: [], failAt: -1, failAfter: false, crash: false, rival: null, flush: true },
        { pagesMax: 1, reads: [], failAt: -1, failAfter: false, crash: false, rival: null, flush: false },
      ],
    },
  ],
  [
    'a feed that was cleared under an open stretch kept its polls behind for ever',
    {
      startFrom: 'beginning',
      late: false,
      before: 0,
      turns: [
        {
          pagesMax: 1,
          reads: [[{ kind: 'top', count: 6, jitter: 0 }], [{ kind: 'trim', count: 1 }]],
          failAt: 5,
          failAfter: false,
          crash: false,
          rival: null,
          flush: false,
        },
        {
          pagesMax: 1,
          reads: [[{ kind: 'delete', at: 0, count: 5 }]],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: [false],
          flush: false,
        },
      ],
    },
  ],
  [
    'the only page of a server that was behind counted as the end of the feed for a stretch that it did not have',
    {
      startFrom: 'beginning',
      late: false,
      before: 0,
      turns: [
        {
          pagesMax: 1,
          reads: [[{ kind: 'top', count: 1, jitter: 0 }], [{ kind: 'top', count: 11, jitter: 0 }]],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: null,
          flush: false,
        },
        {
          pagesMax: 1,
          reads: [[{ kind: 'top', count: 1, jitter: 0 }]],
          failAt: 4,
          failAfter: true,
          crash: false,
          rival: null,
          flush: false,
        },
        {
          pagesMax: 1,
          reads: [
            [{ kind: 'stale', behind: 6 }],
            [{ kind: 'top', count: 2, jitter: 0 }],
            [{ kind: 'top', count: 2, jitter: 0 }],
          ],
          failAt: -1,
          failAfter: false,
          crash: false,
          rival: null,
          flush: false,
        },
      ],
    },
  ],
  [
    'rows that were filled in far beneath an open stretch kept its polls searching for it for ever',
    {
      startFrom: 'beginning',
      late: false,
      before: 1,
      turns: [
        turn([]),
        turn([[{ kind: 'top', count: 5, jitter: 0 }]]),
        turn([[{ kind: 'top', count: 5, jitter: 0 }]]),
        turn([[{ kind: 'bad' }], [{ kind: 'backfill', count: 25 }]]),
      ],
      wide: { datesBefore: 0, backfill: true, rowsKept: null },
    },
  ],
  [
    'rows that a feed which was empty at the start showed with dates ahead of the clock made the one beneath them history',
    {
      startFrom: 'now',
      late: false,
      before: 0,
      turns: [
        later(0, -20, turn([])),
        later(0, -20, turn([[], [{ kind: 'top', count: 1, jitter: 0 }]])),
        later(15, -20, turn([[{ kind: 'top', count: 5, jitter: 0 }]])),
        later(36, -20, turn([])),
      ],
      wide: { datesBefore: 0, backfill: false, rowsKept: null },
    },
  ],
]

/** A turn so many hours after the one before, by a clock that is wrong by so many hours. */
function later(hours: number, clockHours: number, of: Turn): Turn {
  const clocks = { redisMs: 0, processMs: clockHours * hourMs }
  return { ...of, wide: { hours, clocks, queuesForget: false, sweep: 0 } }
}

/** A poll of one page in which nothing fails. */
function turn(reads: Turn['reads']): Turn {
  return { pagesMax: 1, reads, failAt: -1, failAfter: false, crash: false, rival: null, flush: false }
}
