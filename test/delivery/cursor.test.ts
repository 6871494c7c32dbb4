import { expect, test } from 'vitest'
import { readCursor, writeCursor } from '../../src/delivery/records/cursor.ts'
import { progressSchema } from '../../src/delivery/records/selection.ts'

const progress = {
  v: 1 as const,
  atMs: 1_795_239_005_000,
  throughMs: 1_795_239_005_000,
  total: 3,
  idsDone: 0,
}

test('a cursor that was handed out is read again', () => {
  expect(readCursor(progressSchema, writeCursor(progress))).toEqual(progress)
})

test.each([
  ['an instant that no calendar has', writeCursor({ ...progress, atMs: 9e15 })],
  ['an end that no calendar has', writeCursor({ ...progress, throughMs: -9e15 })],
  ['another version', writeCursor({ ...progress, v: 2 })],
  ['something else', 'x'],
])('a cursor with %s is refused in words', (_, cursor) => {
  expect(() => readCursor(progressSchema, cursor)).toThrow(/^This cursor was not made by this bridge/)
})
