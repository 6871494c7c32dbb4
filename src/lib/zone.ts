/**
 * Wall clocks, through Intl alone. A wall time is a number: the milliseconds since the epoch at which a UTC clock shows the
 * same date and hour, so that days and minutes are plain arithmetic.
 */

const dayMs = 86_400_000
/**
 * Since 2012 transitions fall on full quarter hours of UTC; a minute after one in Casey, where clocks follow at the next.
 */
const blockMs = 900_000
/** One question to Intl takes as long as a thousand additions, and a search for a budget replays the same weeks with each. */
const blocksMax = 8_192

interface Zone {
  readonly format: Intl.DateTimeFormat
  /** Block → its offset in milliseconds. */
  readonly offsets: Map<number, number>
}

const zones = new Map<string, Zone>()

/** What a clock on the wall shows at `atMs`. Throws a RangeError for a zone that the runtime does not know. */
export function wallTime(atMs: number, timeZone: string): number {
  return atMs + zoneOffset(atMs, timeZone)
}

/**
 * The first instant at which the wall clock shows `wallMs` or later. A time that a clock change skips is the instant of
 * the change; a time that occurs twice is its first occurrence.
 */
export function instantOf(wallMs: number, timeZone: string): number {
  const before = zoneOffset(wallMs - dayMs, timeZone)
  const after = zoneOffset(wallMs + dayMs, timeZone)
  if (before === after) return wallMs - before
  const change = transition(wallMs - dayMs, wallMs + dayMs, before, timeZone)
  return wallMs - before < change ? wallMs - before : Math.max(change, wallMs - after)
}

/** `YYYY-MM-DD` of a wall time. */
export function dateKey(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 10)
}

/** No clock has changed twice within three weeks since 2010: where it has not over a whole day, it has not within it. */
function zoneOffset(atMs: number, timeZone: string): number {
  const zone = zoneOf(timeZone)
  const startMs = Math.floor(atMs / dayMs) * dayMs
  const offsetMs = blockOffset(startMs, zone)
  return offsetMs === blockOffset(startMs + dayMs, zone) ? offsetMs : blockOffset(atMs, zone)
}

function blockOffset(atMs: number, { format, offsets }: Zone): number {
  const block = Math.floor(atMs / blockMs)
  const known = offsets.get(block)
  if (known !== undefined) return known
  const part: Record<string, number> = {}
  for (const { type, value } of format.formatToParts(block * blockMs)) part[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
  const offsetMs = Date.UTC(year, month - 1, day, hour, minute, second) - block * blockMs
  if (offsets.size >= blocksMax) offsets.clear()
  offsets.set(block, offsetMs)
  return offsetMs
}

function zoneOf(timeZone: string): Zone {
  const known = zones.get(timeZone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US-u-ca-gregory-nu-latn', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  const zone = { format, offsets: new Map<number, number>() }
  zones.set(timeZone, zone)
  return zone
}

/** The only change of the offset within `(lowMs, highMs]`, by halving. */
function transition(lowMs: number, highMs: number, before: number, timeZone: string): number {
  let low = Math.floor(lowMs / blockMs)
  let high = Math.ceil(highMs / blockMs)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (zoneOffset(middle * blockMs, timeZone) === before) low = middle
    else high = middle
  }
  return high * blockMs
}
