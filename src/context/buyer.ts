import type { ContextName, SkipReason } from '../alert/context.ts'
import { property } from '../alert/json/json.ts'
import {
  absentFreshMs,
  type ContextRequest,
  type Found,
  fieldsOf,
  fitting,
  foundOf,
  pagesField,
  type Stored,
} from './cached-answer.ts'
import type { Bulk, Call, ContextCalls, PageOfMany } from './calls.ts'
import { exactKeyOf, findOf, type Instrument, instrumentOfRow } from './instrument.ts'
import type { Bought, PurchaseOptions } from './purchases.ts'

/**
 * Answers several requests for one name with the fewest units: a single request by its own call, several by pages that list many
 * instruments. How far the pages were read is stored beside the values, so that every process goes on from there. Callers hold
 * the lock of the name.
 */
export interface PendingRequest extends ContextRequest {
  /** Where its answer may be stored; a new one goes into the first. */
  readonly fields: readonly [string, ...string[]]
  /** By the monotonic clock. */
  readonly untilMs: number
  /** The first call counts; later ones change nothing. */
  settle(found: Found): void
}

interface BuyerOptions extends Pick<PurchaseOptions, 'cache' | 'names' | 'clock'> {
  readonly name: ContextName
  readonly calls: ContextCalls
  /** `of`: of one instrument. Rejects only where Redis fails. */
  call<T>(call: Call<T>, of?: Instrument): Promise<Bought<T>>
}

interface Pages {
  readonly startMs: number
  readonly next: number
  readonly last: number
  /** Whether those beyond the first were worth their units this time. */
  readonly needed?: boolean
  /** How many pages there were the time before, where it was so then. */
  readonly before?: number
  /** How many instruments were bought by their own call since then. */
  readonly alone: number
  /** Every row so far named its instrument, so the API has nothing of an instrument that is on no page. */
  readonly complete: boolean
}

/** Settles the requests that still have time. Rejects only where Redis fails. */
export async function buy(requests: readonly PendingRequest[], options: BuyerOptions): Promise<void> {
  const { bulk } = options.calls
  if (bulk === undefined) {
    for (const request of inTime(requests, options)) await buyOne(request, options)
    return
  }
  let open: readonly PendingRequest[] = inTime(requests, options)
  let pages = await pagesRead(options)
  let isOutOfOrder = areOld(pages, options)
  while (open.length > 0) {
    const pagesLeft = pages.last - pages.next + 1
    const isLeft = pagesLeft > 0
    // How many there are is known from the first; then the fewer calls are made.
    const worthIt = pages.next === 1 ? bulk.from : pagesLeft
    if (isLeft && open.length + pages.alone >= worthIt) {
      const read = await buyPages(bulk, pages, open, options)
      if (read === undefined) return
      pages = read.pages
      open = inTime(read.left, options)
    } else if (!isLeft && pages.complete && open.length + pages.alone >= bulk.from) {
      // A few are searched for first: rows move between pages while these are read.
      if (!isOutOfOrder) return keepAbsent(open, options)
      pages = firstPage(options)
      isOutOfOrder = false
    } else {
      const alone = open.slice(0, aloneAtOnceMax)
      pages = { ...pages, alone: pages.alone + alone.length }
      await keepPages(pages, options)
      await Promise.all(alone.map((request) => buyOne(request, options)))
      open = inTime(open.slice(aloneAtOnceMax), options)
    }
  }
}

export function settleAll(requests: readonly PendingRequest[], why: SkipReason): void {
  for (const request of requests) request.settle({ ok: false, why })
}

/** The requests that still have time; the others are settled as late. */
export function inTime(
  requests: readonly PendingRequest[],
  { clock }: Pick<BuyerOptions, 'clock'>,
): PendingRequest[] {
  const nowMs = clock.monotonicMs()
  settleAll(
    requests.filter(({ untilMs }) => untilMs <= nowMs),
    'deadline',
  )
  return requests.filter(({ untilMs }) => untilMs > nowMs)
}

async function buyOne(
  request: PendingRequest,
  { calls, cache, call, ...options }: BuyerOptions,
): Promise<void> {
  let bought = await call(calls.single, request.of)
  for (let page = 2; calls.laterPage && bought.ok && bought.answer === 'on_later_page'; page += 1) {
    if (page > searchPagesMax || inTime([request], options).length === 0) break
    bought = await call(calls.laterPage(page), request.of)
  }
  if (!bought.ok && bought.why !== 'not_found') return request.settle(bought)
  // One that is beyond so many hits is looked for again with the next alert after a while.
  if (!bought.ok || bought.answer === undefined || bought.answer === 'on_later_page')
    return keepAbsent([request], { cache, ...options })
  const value = fitting(bought.answer)
  request.settle(foundOf(value, bought.atMs, 'call'))
  await cache.store([entry(request.fields[0], { ...value, of: request.of })], bought.atMs)
}

/** Instruments that are asked for each by its own call, at the same time: none waits for the call of another. */
const aloneAtOnceMax = 4

/** Each costs what the first one costs. */
const searchPagesMax = 3

/**
 * Where many are looked for, a few pages at the same time: one of them would hardly have all. Each answers what it has as soon as
 * it comes, whatever becomes of the others. undefined: a call failed, and all requests are settled.
 */
async function buyPages(
  bulk: Bulk,
  before: Pages,
  open: readonly PendingRequest[],
  options: BuyerOptions,
): Promise<{ readonly pages: Pages; readonly left: readonly PendingRequest[] } | undefined> {
  const { call, names } = options
  const count = lastAtOnce(bulk, before, open.length) - before.next + 1
  const settled = new Set<PendingRequest>()
  let onFirst = 0
  const read = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const bought = await call(bulk.page(before.next + at))
      if (!bought.ok) return bought
      const found = await keepRows(bulk, bought, open, options)
      if (before.next + at === 1) onFirst = found.length
      for (const request of found) settled.add(request)
      return bought
    }),
  )
  const left = open.filter((request) => !settled.has(request))
  let pages = before
  let needed = before.next > 1
  for (const bought of read) {
    if (!bought.ok) {
      settleAll(left, bought.why === 'not_found' ? 'failed' : bought.why)
      break
    }
    const { rows, lastPage } = bought.answer
    const complete = pages.complete && bulk.complete(rows, names)
    if (pages.next === 1) needed = open.length - onFirst + before.alone >= lastPage - 1
    pages = { ...pages, next: pages.next + 1, last: lastPage, complete, needed }
  }
  if (pages !== before) await keepPages(pages, options)
  return read.every(({ ok }) => ok) ? { pages, left } : undefined
}

const pagesAtOnceMax = 3

/**
 * Only the first page says how many there are. Where it is known how many there were, and the others were needed too, nobody waits for
 * what the first says of so many instruments: all are read at the same time. What is traded most is on the first, and a desk may ask
 * for little else: then that one is enough.
 */
function lastAtOnce({ from }: Bulk, { next, last, before }: Pages, instruments: number): number {
  if (next > 1) return instruments < from ? next : Math.min(last, next + pagesAtOnceMax - 1)
  return before !== undefined && instruments >= manyAPage * before ? Math.min(before, allAtOnceMax) : next
}

const manyAPage = 2
const allAtOnceMax = 20

/** Returns the requests that the page has settled. */
async function keepRows(
  bulk: Bulk,
  bought: Extract<Bought<PageOfMany>, { readonly ok: true }>,
  open: readonly PendingRequest[],
  { name, cache, names }: BuyerOptions,
): Promise<readonly PendingRequest[]> {
  const named = bought.answer.rows.flatMap((row) => {
    const of = instrumentOfRow(row, names)
    return of === undefined ? [] : [{ of, row }]
  })
  const shown = [...Map.groupBy(named, ({ of }) => exactKeyOf(of)).values()].flatMap(([first, ...more]) =>
    first === undefined
      ? []
      : [{ of: first.of, value: fitting(bulk.valueOf([first.row, ...more.map(({ row }) => row)])) }],
  )
  const own = open.flatMap((request) => {
    const value = findOf(shown, request.of, ({ of }) => of)?.value
    return value === undefined ? [] : [{ request, value }]
  })
  for (const { request, value } of own) request.settle(foundOf(value, bought.atMs, 'call'))
  const entries = [
    ...shown.flatMap(({ of, value }) => fieldsOf(name, of).map((field) => entry(field, { ...value, of }))),
    ...own.map(({ request: { fields, of }, value }) => entry(fields[0], { ...value, of })),
  ]
  await cache.store(entries, bought.atMs)
  return own.map(({ request }) => request)
}

/** That the API has nothing of an instrument is stored like a value: the next alert needs no call. */
async function keepAbsent(
  requests: readonly PendingRequest[],
  { cache, clock }: Pick<BuyerOptions, 'cache' | 'clock'>,
): Promise<void> {
  settleAll(requests, 'not_found')
  await cache.store(
    requests.map(({ fields, of }) => entry(fields[0], { why: 'not_found', of })),
    clock.now(),
  )
}

function entry(field: string, value: Stored) {
  return { field, value }
}

async function pagesRead({ name, calls, cache, clock }: BuyerOptions): Promise<Pages> {
  const nowMs = clock.now()
  const [kept] = await cache.read([pagesField(name)])
  const pages = kept?.value
  // That the pages list the whole market is believed for no longer than that one instrument is absent.
  if (isPages(pages) && Math.abs(nowMs - pages.startMs) < Math.min(calls.freshMs, absentFreshMs)) return pages
  const before = isPages(pages) && pages.needed && isCounted(pages) ? { before: pages.last } : {}
  return { ...firstPage({ clock }), ...before }
}

function firstPage({ clock }: Pick<BuyerOptions, 'clock'>): Pages {
  return { startMs: clock.now(), next: 1, last: Number.MAX_SAFE_INTEGER, alone: 0, complete: true }
}

function isCounted({ last }: Pages): boolean {
  return last < Number.MAX_SAFE_INTEGER
}

/** Whether trade may have moved many rows to other pages since the first of several was read. */
function areOld({ startMs, next, last }: Pages, { clock }: Pick<BuyerOptions, 'clock'>): boolean {
  return next > 1 && last > 1 && Math.abs(clock.now() - startMs) > pagesTogetherMs
}

const pagesTogetherMs = 5_000

function isPages(value: unknown): value is Pages {
  return ['startMs', 'next', 'last', 'alone'].every((name) => typeof property(value, name) === 'number')
}

async function keepPages(pages: Pages, { name, cache, clock }: BuyerOptions): Promise<void> {
  await cache.store([{ field: pagesField(name), value: pages }], clock.now())
}
