import type { LaneView } from '../queue/view.ts'

/** When a lane looks at what Redis has of its sink: one command for all that need something of it. */
interface LaneLooksOptions {
  readonly everyMs: number
  read(): Promise<LaneView>
  /** When the lane begins, and soon again where Redis does not answer: what it stores is needed before many alerts are sent. */
  first(view: Promise<LaneView>): unknown
  each(view: Promise<LaneView>): void
}

export class LaneLooks {
  readonly #options: LaneLooksOptions
  #every: NodeJS.Timeout | undefined
  #again: NodeJS.Timeout | undefined

  constructor(options: LaneLooksOptions) {
    this.#options = options
  }

  start({ withFirst }: { withFirst: boolean }): void {
    const { everyMs, each } = this.#options
    if (withFirst) void this.#first()
    this.#every = setInterval(() => each(this.#read()), everyMs)
  }

  stop(): void {
    clearInterval(this.#every)
    clearTimeout(this.#again)
    this.#every = undefined
  }

  async #first(): Promise<void> {
    const view = this.#read()
    this.#options.first(view)
    const hasAnswer = await view.then(() => true).catch(() => false)
    if (!hasAnswer && this.#every !== undefined)
      this.#again = setTimeout(() => void this.#first(), lookAgainMs)
  }

  #read(): Promise<LaneView> {
    const view = this.#options.read()
    // Whoever uses it handles its error; perhaps nobody does.
    view.catch(() => {})
    return view
  }
}

const lookAgainMs = 100
