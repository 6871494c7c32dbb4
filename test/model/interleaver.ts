/** Lets one of two pollers take its next step at a time. */
export class Interleaver {
  readonly #order: readonly boolean[]
  readonly #waiting: ((() => void) | undefined)[] = [undefined, undefined]
  readonly #left = [false, false]
  #turns = 0

  constructor(order: readonly boolean[]) {
    this.#order = order
  }

  wait(who: 0 | 1): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting[who] = resolve
      this.#next()
    })
  }

  leave(who: 0 | 1): void {
    this.#left[who] = true
    this.#next()
  }

  #next(): void {
    const ready = [0, 1].filter((who) => this.#waiting[who])
    if (ready.length === 0 || [0, 1].some((who) => !this.#left[who] && !this.#waiting[who])) return
    const wanted = this.#order[this.#turns++ % Math.max(1, this.#order.length)] ? 1 : 0
    const who = ready.includes(wanted) ? wanted : (ready[0] ?? 0)
    const resolve = this.#waiting[who]
    this.#waiting[who] = undefined
    resolve?.()
  }
}
