import { setTimeout as sleep } from 'node:timers/promises'
import { type LaneView, type LaneViewRequest, readLaneViews } from '../queue/view.ts'

/** A lane that looks at what Redis has of its sink: one view for all that need something of it. */
export interface LooksOfLane {
  request(): LaneViewRequest
  /** When the lane begins, and soon again where Redis does not answer: what it stores is needed before many alerts are sent. */
  first(view: Promise<LaneView>): unknown
  each(view: Promise<LaneView>): void
}

/** All lanes of a process look at the same moment, so that Redis is asked once for all of them. */
export class LaneLooks {
  readonly #options: Parameters<typeof readLaneViews>[0] & { readonly everyMs: number }
  readonly #lanes = new Set<LooksOfLane>()
  #every: NodeJS.Timeout | undefined

  constructor(options: Parameters<typeof readLaneViews>[0] & { readonly everyMs: number }) {
    this.#options = options
  }

  start(lane: LooksOfLane, { withFirst }: { withFirst: boolean }): void {
    this.#lanes.add(lane)
    this.#every ??= setInterval(() => this.#look(), this.#options.everyMs)
    if (withFirst) void this.#first(lane)
  }

  stop(lane: LooksOfLane): void {
    this.#lanes.delete(lane)
    if (this.#lanes.size > 0) return
    clearInterval(this.#every)
    this.#every = undefined
  }

  #look(): void {
    const lanes = [...this.#lanes]
    const views = this.#read(lanes)
    for (const [nth, view] of views.entries()) lanes[nth]?.each(view)
  }

  async #first(lane: LooksOfLane): Promise<void> {
    const [view] = this.#read([lane])
    if (view === undefined) return
    lane.first(view)
    const hasAnswer = await view.then(() => true).catch(() => false)
    if (hasAnswer) return
    await sleep(lookAgainMs, undefined, { ref: false })
    if (this.#lanes.has(lane)) await this.#first(lane)
  }

  #read(lanes: readonly LooksOfLane[]): Promise<LaneView>[] {
    const views = readLaneViews(
      this.#options,
      lanes.map((lane) => lane.request()),
    )
    // Whoever uses it handles its error; perhaps nobody does.
    for (const view of views) view.catch(() => {})
    return views
  }
}

const lookAgainMs = 100
