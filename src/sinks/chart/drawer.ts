import { createHash } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { toError } from '../../lib/errors.ts'
import type { Drawn, DrawOrder } from './draw-worker.ts'

/**
 * Draws charts in a thread of its own, which starts with the first chart and ends when none was wanted for a while. A chart
 * is drawn once for all messages and attempts that show it: what was drawn is kept, within bounds. Nothing that goes wrong
 * here, not even a missing library, costs an alert more than a second, once: then no chart is drawn for a while.
 */
export interface Drawer {
  /** A PNG; undefined where it is not there within `waitMs`, or a second. Never rejects. */
  draw(svg: string, waitMs: number): Promise<Uint8Array | undefined>
  close(): Promise<void>
}

export interface DrawerOptions {
  readonly onFault?: (reason: string) => void
  readonly workerUrl?: URL
  /** The longest that a message waits for its chart. */
  readonly waitMsMax?: number | undefined
  readonly stuckMs?: number
  readonly idleMs?: number
}

interface Thread {
  readonly worker: Worker
  readonly orders: Map<number, (png: Uint8Array | undefined) => void>
  /** How many orders it has got since it was started. */
  given: number
  /** Fires when the present chart takes too long. */
  watch: NodeJS.Timeout | undefined
}

/** About as many as are drawn in a second. In a burst, alerts beyond these are sent without a chart at once, since theirs would be late. */
const ordersMax = 12
const svgCharsMax = 100_000
const keptMax = 300
const keptBytesMax = 8 * 1_048_576

export function createDrawer(options: DrawerOptions = {}): Drawer {
  return new ThreadDrawer(options)
}

class ThreadDrawer implements Drawer {
  readonly #options: DrawerOptions
  /** By the hash of their text, the one used last at the end. */
  readonly #kept = new Map<string, Uint8Array>()
  readonly #drawing = new Map<string, Promise<Uint8Array | undefined>>()
  /** Of these, the charts that came too late for a message. Until they are drawn, no message waits for them or for later ones. */
  readonly #late = new Set<string>()
  #keptBytes = 0
  /** All threads that still draw. New orders go to the one that was started last. */
  readonly #threads = new Set<Thread>()
  #thread: Thread | undefined
  #idle: NodeJS.Timeout | undefined
  #restsUntilMs = 0
  #orders = 0
  #closed = false

  constructor(options: DrawerOptions) {
    this.#options = options
  }

  async draw(svg: string, waitMs: number): Promise<Uint8Array | undefined> {
    const hash = createHash('sha256').update(svg).digest('base64')
    const kept = this.#kept.get(hash)
    if (kept) {
      this.#kept.delete(hash)
      this.#kept.set(hash, kept)
      return kept
    }
    const drawing = this.#drawing.get(hash) ?? this.#order(hash, svg)
    if (drawing === undefined || this.#late.has(hash)) return undefined
    const png = await inTime(drawing, Math.min(waitMs, this.#options.waitMsMax ?? waitMsMaxDefault))
    if (this.#drawing.has(hash)) this.#late.add(hash)
    return png
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#threads].map((thread) => this.#end(thread)))
  }

  #order(hash: string, svg: string): Promise<Uint8Array | undefined> | undefined {
    const rests = performance.now() < this.#restsUntilMs
    const isBusy = this.#late.size > 0 || this.#drawing.size >= ordersMax
    if (this.#closed || rests || isBusy || svg.length > svgCharsMax) return undefined
    clearTimeout(this.#idle)
    const thread = isFull(this.#thread) ? this.#start() : this.#thread
    if (thread === undefined) return undefined
    this.#thread = thread
    thread.given += 1
    const id = ++this.#orders
    const { promise, resolve } = Promise.withResolvers<Uint8Array | undefined>()
    thread.orders.set(id, resolve)
    this.#watchOver(thread)
    thread.worker.postMessage({ id, svg } satisfies DrawOrder)
    const drawing = promise.then((png) => {
      this.#drawing.delete(hash)
      this.#late.delete(hash)
      if (png) this.#keep(hash, png)
      return png
    })
    this.#drawing.set(hash, drawing)
    return drawing
  }

  #start(): Thread | undefined {
    let worker: Worker
    try {
      worker = new Worker(this.#options.workerUrl ?? besides('draw-worker'), {
        // A person who stops the bridge does not wait for a chart.
        stdin: false,
        resourceLimits: { maxOldGenerationSizeMb: 64 },
      })
    } catch (thrown) {
      this.#rest(toError(thrown).message)
      return undefined
    }
    const thread: Thread = { worker, orders: new Map(), given: 0, watch: undefined }
    this.#threads.add(thread)
    worker.unref()
    worker.on('message', ({ id, png }: Drawn) => {
      const resolve = thread.orders.get(id)
      thread.orders.delete(id)
      this.#watchOver(thread)
      resolve?.(png)
      if (thread.orders.size > 0) return
      if (isFull(thread)) void this.#end(thread)
      else this.#endWhenIdle(thread)
    })
    worker.on('error', ({ message }) => void this.#fail(thread, message))
    worker.on('exit', () => void this.#fail(thread, 'its thread ended'))
    return thread
  }

  /** The longest that one chart may take, from when the one before was done. */
  #watchOver(thread: Thread): void {
    clearTimeout(thread.watch)
    if (thread.orders.size === 0) return
    const { stuckMs = stuckMsDefault } = this.#options
    thread.watch = setTimeout(() => void this.#fail(thread, `no chart in ${stuckMs} ms`), stuckMs)
    thread.watch.unref()
  }

  async #fail(thread: Thread, reason: string): Promise<void> {
    if (!this.#threads.has(thread)) return
    this.#rest(reason)
    await this.#end(thread)
  }

  #rest(reason: string): void {
    this.#restsUntilMs = performance.now() + restMs
    if (!this.#closed) this.#options.onFault?.(reason)
  }

  #endWhenIdle(thread: Thread): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => void this.#end(thread), this.#options.idleMs ?? idleMsDefault)
    this.#idle.unref()
  }

  async #end(thread: Thread): Promise<void> {
    if (!this.#threads.delete(thread)) return
    if (this.#thread === thread) {
      this.#thread = undefined
      clearTimeout(this.#idle)
    }
    clearTimeout(thread.watch)
    for (const resolve of thread.orders.values()) resolve(undefined)
    thread.orders.clear()
    await thread.worker.terminate()
  }

  #keep(hash: string, png: Uint8Array): void {
    this.#kept.set(hash, png)
    this.#keptBytes += png.byteLength
    for (const [oldest, { byteLength }] of this.#kept) {
      if (this.#kept.size <= keptMax && this.#keptBytes <= keptBytesMax) return
      this.#kept.delete(oldest)
      this.#keptBytes -= byteLength
    }
  }
}

const waitMsMaxDefault = 1_000
const stuckMsDefault = 10_000
const restMs = 300_000
/**
 * The library's pictures, of 1.6 MB each, stay in memory until V8 collects, and V8 does not see how large they are: after so
 * many orders the next thread takes over, and this one ends with its last. Without that, 600 charts, eight at a time, took a
 * gigabyte.
 */
const drawnMax = 10
function isFull(thread: Thread | undefined): boolean {
  return thread === undefined || thread.given >= drawnMax
}

/** A thread takes some tenths of a second to start. */
const idleMsDefault = 900_000

function inTime<T>(work: Promise<T>, waitMs: number): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), waitMs)
    void work.then(resolve).finally(() => clearTimeout(timer))
  })
}

/** The file runs as it was written, and as it was compiled. */
function besides(name: string): URL {
  return new URL(`./${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)
}
