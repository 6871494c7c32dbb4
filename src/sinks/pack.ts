import type { Parcel } from './sink.ts'

/**
 * Which alerts share a message: as few messages as hold them, oldest first, each within what its receiver takes. An alert
 * that fills a message has one of its own, so that nothing is left out to make room. Pure, so that a repeated send of the
 * same alerts makes the same messages.
 */
export function pack<P extends Parcel>(
  parcels: readonly P[],
  /** What one alert takes, by each thing that the receiver counts, in the order of `room`. */
  takes: (parcel: P) => readonly number[],
  room: readonly number[],
): P[][] {
  const messages: P[][] = []
  let left: number[] = []
  for (const parcel of oldestFirst(parcels)) {
    const taken = takes(parcel)
    const message = messages.at(-1)
    if (message !== undefined && left.every((amount, index) => amount >= (taken[index] ?? 0))) {
      message.push(parcel)
      left = left.map((amount, index) => amount - (taken[index] ?? 0))
    } else {
      messages.push([parcel])
      left = room.map((amount, index) => amount - (taken[index] ?? 0))
    }
  }
  return messages
}

export function oldestFirst<P extends Parcel>(parcels: readonly P[]): P[] {
  return parcels.toSorted(
    ({ alert: a }, { alert: b }) => (a.firedAtMs ?? 0) - (b.firedAtMs ?? 0) || a.id - b.id,
  )
}
