import type { Parcel } from './sink.ts'

/**
 * Which alerts share a message: as few messages as possible, oldest first, each within the receiver's limits. A long
 * alert has a message of its own, so that no text is left out. Pure, so that a repeated send of the same alerts makes
 * the same messages.
 */
export function pack<P extends Parcel>(
  parcels: readonly P[],
  /** The size of one alert in each unit that the receiver limits, in the order of `room`. */
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
