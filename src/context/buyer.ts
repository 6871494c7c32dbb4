import type { ContextName, SkipReason } from '../alert/context.ts'
import { type Found, fieldOf, fitting, foundOf, pagesField, type Want } from './found.ts'
import { type Instrument, instrumentOfRow, isSame, keyOf } from './instrument.ts'
import type { Bulk, Call, Shelf } from './needs.ts'
import type { Bought, PurchaseOptions } from './purchases.ts'

/**
 * Buys for several wants of one name the cheapest way: one alone by its own call, several by pages that serve many. How far
 * the pages were read is kept beside the values, so that every process goes on from there. Works under a lock.
 */
export interface Pending extends Want {
  readonly field: string
  /** By the monotonic clock. */
  readonly untilMs: number
  /** The first counts. */
  settle(found: Found): void
}

export interface BuyerOptions extends Pick<PurchaseOptions, 'cache' | 'names' | 'clock'> {
  readonly name: ContextName
  readonly shelf: Shelf
  /** Throws what Redis throws. */
  call<T>(call: Call<T>, of: Instrument): Promise<Bought<T>>
}

interface Pages {
  readonly startMs: number
  readonly next: number
  readonly last: number
  /** Instruments that were bought alone since. */
  readonly alone: number
  /** So far, every row showed its instrument: one that is on no page has nothing. */
  readonly complete: boolean
}

/** Settles the wants, but for those whose time is over. Throws what Redis throws. */
export async function buy(wants: readonly Pending[], options: BuyerOptions): Promise<void> {
  const { bulk } = options.shelf
  if (bulk === undefined) {
    for (const want of inTime(wants, options)) await buyOne(want, options)
    return
  }
  let open = inTime(wants, options)
  let pages = await pagesRead(options)
  while (open.length > 0) {
    const isLeft = pages.next <= Math.min(pages.last, bulk.pagesMax)
    if (isLeft && (pages.next > 1 || open.length + pages.alone >= bulk.from)) {
      const read = await buyPage(bulk, pages, open, options)
      if (read === undefined) return
      pages = read.pages
      open = read.left
    } else if (!isLeft && pages.complete) {
      await keepAbsent(open, options)
      return
    } else {
      const [one, ...rest] = open
      if (one === undefined) return
      pages = { ...pages, alone: pages.alone + 1 }
      await keepPages(pages, options)
      await buyOne(one, options)
      open = inTime(rest, options)
    }
  }
}

export function settleAll(wants: readonly Pending[], why: SkipReason): void {
  for (const want of wants) want.settle({ ok: false, why })
}

/** The others are settled. */
export function inTime(wants: readonly Pending[], { clock }: Pick<BuyerOptions, 'clock'>): Pending[] {
  const nowMs = clock.monotonicMs()
  settleAll(
    wants.filter(({ untilMs }) => untilMs <= nowMs),
    'deadline',
  )
  return wants.filter(({ untilMs }) => untilMs > nowMs)
}

async function buyOne(want: Pending, { shelf, cache, call, ...options }: BuyerOptions): Promise<void> {
  const bought = await call(shelf.single, want.of)
  if (!bought.ok && bought.why !== 'not_found') return want.settle(bought)
  if (!bought.ok || bought.answer === undefined) return keepAbsent([want], { cache, ...options })
  const value = fitting(bought.answer)
  want.settle(foundOf(value, bought.atMs, 'call'))
  await cache.store([{ field: want.field, value }], bought.atMs)
}

/** undefined: the page could not be had, and all are settled. */
async function buyPage(bulk: Bulk, before: Pages, open: readonly Pending[], options: BuyerOptions) {
  const { name, cache, names, call } = options
  const bought = await call(bulk.page(before.next), nobody)
  if (!bought.ok) {
    settleAll(open, bought.why === 'not_found' ? 'failed' : bought.why)
    return undefined
  }
  const { rows, lastPage } = bought.answer
  const named = rows.flatMap((row) => {
    const of = instrumentOfRow(row, names)
    return of === undefined ? [] : [{ of, row }]
  })
  const shown = [...Map.groupBy(named, ({ of }) => keyOf(of)).values()].flatMap(([first, ...more]) =>
    first === undefined
      ? []
      : [{ of: first.of, value: fitting(bulk.valueOf([first.row, ...more.map(({ row }) => row)])) }],
  )
  const own = open.flatMap((want) => {
    const value = shown.find(({ of }) => isSame(of, want.of))?.value
    return value === undefined ? [] : [{ want, field: want.field, value }]
  })
  for (const { want, value } of own) want.settle(foundOf(value, bought.atMs, 'call'))
  const others = shown.map(({ of, value }) => ({ field: fieldOf(name, of), value }))
  await cache.store([...others, ...own.map(({ field, value }) => ({ field, value }))], bought.atMs)
  const complete = before.complete && bulk.complete(rows, names)
  const pages = { ...before, next: before.next + 1, last: lastPage, complete }
  await keepPages(pages, options)
  const settled = new Set(own.map(({ want }) => want))
  return { pages, left: open.filter((want) => !settled.has(want)) }
}

const nobody: Instrument = { symbol: undefined, slug: undefined }

/** That the API holds nothing of an instrument is worth as much as a value. */
async function keepAbsent(
  wants: readonly Pending[],
  { cache, clock }: Pick<BuyerOptions, 'cache' | 'clock'>,
): Promise<void> {
  settleAll(wants, 'not_found')
  const value = { why: 'not_found' }
  await cache.store(
    wants.map(({ field }) => ({ field, value })),
    clock.now(),
  )
}

async function pagesRead({ name, shelf, cache, clock }: BuyerOptions): Promise<Pages> {
  const nowMs = clock.now()
  const [kept] = await cache.read([pagesField(name)])
  const pages = kept?.value as Pages | undefined
  if (pages !== undefined && Math.abs(nowMs - pages.startMs) < shelf.freshMs) return pages
  return { startMs: nowMs, next: 1, last: Number.MAX_SAFE_INTEGER, alone: 0, complete: true }
}

async function keepPages(pages: Pages, { name, cache, clock }: BuyerOptions): Promise<void> {
  await cache.store([{ field: pagesField(name), value: pages }], clock.now())
}
