import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { describeReadError } from '../../config/file/read-error.ts'
import { formatDuration } from '../../lib/duration.ts'
import { UserError } from '../../lib/errors.ts'
import { dateKey, instantOf, wallTime } from '../../lib/zone.ts'
import { createSchedule } from '../../schedule/create.ts'
import type { ScheduleOptions } from '../../schedule/schedule.ts'
import { evenLags, type LagSummary, simulate, summarizeLags } from '../../schedule/simulate.ts'
import { readFileArgument } from '../arguments/file-argument.ts'
import { print } from '../output/output.ts'
import { table } from '../output/table.ts'

/** `plan --trace`: simulates a history with the same schedule that runs live, and a simulated clock. */
export async function simulateFile(
  options: ScheduleOptions,
  { trace, polls, json }: { trace: string; polls?: string; json?: boolean },
): Promise<void> {
  const times = await readTrace(trace, options.timeZone)
  refuseEndless(trace, times, options.unitsPerDay)
  const result = simulate(times, createSchedule(options, undefined), options)
  if (polls !== undefined) await writePolls(polls, result.polls)
  const lag = summarizeLags(result.lagsMs)
  const fixed = summarizeLags(evenLags(times, options))
  const { unitsPerDayMax } = result
  const answer = { polls: result.polls.length, unitsPerDayMax, lag, fixed }
  print(json ? JSON.stringify(answer) : describe(times.length, options, answer))
}

/** Firing times in milliseconds. A time without an offset is a local time of `timeZone`. */
export async function readTrace(file: string, timeZone: string): Promise<number[]> {
  const lines = (await readFileArgument(file)).text.split('\n')
  const times: number[] = []
  for (const [index, line] of lines.entries()) {
    const text = line.trim()
    if (text === '') continue
    const at = parseTime(text, timeZone, times.at(-1))
    if (at === undefined)
      throw new UserError(`${file}:${index + 1}: "${text.slice(0, 60)}" is no ISO time of a day that exists.`)
    if (at < firstMs)
      throw new UserError(
        `${file}:${index + 1}: ${text} is before 1900; firing times are dates of the Gregorian calendar.`,
      )
    const beforeMs = times.at(-1) ?? at
    if (at < beforeMs)
      throw new UserError(
        `${file}:${index + 1}: ${text} is earlier than the line before it; sort the file, oldest first.`,
      )
    if (at - beforeMs > gapMsMax)
      throw new UserError(
        `${file}:${index + 1}: ${text} is ${formatDuration(at - beforeMs)} after the line before it; a simulation polls all the time between, so leave out what is older than the last gap of a year.`,
      )
    times.push(at)
  }
  if (times.length === 0) throw new UserError(`${file}: there is no firing time in it.`)
  return times
}

const isoTime = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)(?:(Z)|([+-]\d{2}):?(\d{2})?)?$/i

/** When clocks go back, a local time occurs twice: it is the second one if the first is before `afterMs`. */
function parseTime(text: string, timeZone: string, afterMs = Number.NEGATIVE_INFINITY): number | undefined {
  const [, date, time, utc, hours, minutes = '00'] = isoTime.exec(text) ?? []
  if (date === undefined || time === undefined) return undefined
  const dateMs = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(dateMs) || dateKey(dateMs) !== date) return undefined
  const offset = hours === undefined ? 'Z' : `${hours}:${minutes}`
  const at = Date.parse(`${date}T${time.replace(',', '.')}${offset}`)
  if (Number.isNaN(at) || at < firstMs) return Number.isNaN(at) ? undefined : at
  if (utc !== undefined || hours !== undefined) return at
  const first = instantOf(at, timeZone)
  if (first >= afterMs) return first
  const again = repeatsMs.map((ms) => first + ms).find((each) => wallTime(each, timeZone) === at)
  return again ?? first
}

/** Older dates are most likely dates of another calendar. */
const firstMs = Date.UTC(1900, 0, 1)
/** How far clocks may go back. */
const repeatsMs = [1_800_000, 3_600_000, 7_200_000]
const gapMsMax = 366 * 86_400_000
/** A simulation takes about 20 us a poll. */
const pollsMax = 50_000_000

function refuseEndless(file: string, times: readonly number[], unitsPerDay: number): void {
  const days = Math.ceil(((times.at(-1) ?? 0) - (times[0] ?? 0)) / 86_400_000) + 1
  if (days * unitsPerDay > pollsMax)
    throw new UserError(
      `${file}: ${days} days at ${unitsPerDay} units a day are more polls than a simulation makes (${pollsMax}); take fewer days.`,
    )
}

async function writePolls(file: string, polls: readonly number[]): Promise<void> {
  const stream = createWriteStream(file)
  try {
    await once(stream, 'open')
    const batch = 10_000
    for (let from = 0; from < polls.length; from += batch) {
      const lines = polls.slice(from, from + batch).map((at) => `${new Date(at).toISOString()}\n`)
      if (!stream.write(lines.join(''))) await once(stream, 'drain')
    }
    stream.end()
    await once(stream, 'close')
  } catch (thrown) {
    throw new UserError(`--polls: ${file} cannot be written: ${describeReadError(thrown)}`)
  }
}

interface Answer {
  readonly polls: number
  readonly unitsPerDayMax: number
  readonly lag: LagSummary
  readonly fixed: LagSummary
}

function describe(
  alerts: number,
  options: ScheduleOptions,
  { polls, unitsPerDayMax, lag, fixed }: Answer,
): string {
  const row = (name: string, { mean, p50, p95, p99, max }: LagSummary) => [
    name,
    ...[mean, p50, p95, p99, max].map((seconds) => `${seconds.toFixed(1)} s`),
  ]
  const share = ((100 * lag.mean) / fixed.mean).toFixed(0)
  return [
    `${alerts} ${alerts === 1 ? 'alert' : 'alerts'}, ${polls} polls, at most ${unitsPerDayMax} of ${options.unitsPerDay} units a day`,
    '',
    table(['LAG', 'MEAN', 'P50', 'P95', 'P99', 'MAX'], [row('planned', lag), row('evenly spaced', fixed)]),
    '',
    `The mean delay is ${share} % of that of evenly spaced polls.`,
  ].join('\n')
}
