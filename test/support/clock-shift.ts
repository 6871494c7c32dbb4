/**
 * Loaded into a process before its program (`--import`): the wall clock jumps when SIGUSR2 comes, by the hours that
 * stand in CLOCK_JUMPS, one after the other; timers go on as they do when a machine's clock is set.
 */
const RealDate = Date
const jumps = (process.env['CLOCK_JUMPS'] ?? '').split(',').map(Number)
let offsetMs = 0

globalThis.Date = class extends RealDate {
  constructor(...given: [] | [value: number | string | Date]) {
    if (given.length === 0) super(RealDate.now() + offsetMs)
    // All the forms that a Date takes.
    else super(...(given as [number]))
  }
  static override now(): number {
    return RealDate.now() + offsetMs
  }
} as DateConstructor

process.on('SIGUSR2', () => {
  offsetMs += (jumps.shift() ?? 0) * 3_600_000
})
