import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { describeReadError } from '../config/read-error.ts'
import { UserError } from '../lib/errors.ts'
import { instantOf } from '../lib/zone.ts'
import { createSchedule } from '../schedule/create.ts'
import type { ScheduleOptions } from '../schedule/options.ts'
import { evenLags, type LagSummary, replay, summarizeLags } from '../schedule/simulate.ts'
import { print } from './output.ts'
import { table } from './table.ts'

/** `plan --trace`: a history through the very schedule that runs live, with a simulated clock. */
export async function replayFile(
  options: ScheduleOptions,
  { trace, polls, json }: { trace: string; polls?: string; json?: boolean },
): Promise<void> {
  const times = readTrace(trace, options.timeZone)
  const result = replay(times, createSchedule(options, undefined), options)
  if (polls !== undefined) await writePolls(polls, result.polls)
  const lag = summarizeLags(result.lagsMs)
  const fixed = summarizeLags(evenLags(times, options))
  const { unitsPerDayMax } = result
  const answer = { polls: result.polls.length, unitsPerDayMax, lag, fixed }
  print(json ? JSON.stringify(answer) : describe(times.length, options, answer))
}

/** Firing times in milliseconds. A time without an offset is one on the clock of `timeZone`. */
export function readTrace(file: string, timeZone: string): number[] {
  const lines = readText(file).split('\n')
  const times: number[] = []
  for (const [index, line] of lines.entries()) {
    const text = line.trim()
    if (text === '') continue
    const at = parseTime(text, timeZone)
    if (at === undefined) throw new UserError(`${file}:${index + 1}: "${text.slice(0, 60)}" is no ISO time.`)
    if (at < (times.at(-1) ?? at))
      throw new UserError(
        `${file}:${index + 1}: ${text} is earlier than the line before it; sort the file, oldest first.`,
      )
    times.push(at)
  }
  if (times.length === 0) throw new UserError(`${file}: there is no firing time in it.`)
  return times
}

function readText(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (thrown) {
    throw new UserError(`${file}: the file cannot be read: ${describeReadError(thrown)}`)
  }
}

const isoTime = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)(?:(Z)|([+-]\d{2}):?(\d{2})?)?$/i

function parseTime(text: string, timeZone: string): number | undefined {
  const [, date, time, utc, hours, minutes = '00'] = isoTime.exec(text) ?? []
  if (date === undefined || time === undefined) return undefined
  const offset = hours === undefined ? 'Z' : `${hours}:${minutes}`
  const at = Date.parse(`${date}T${time.replace(',', '.')}${offset}`)
  if (Number.isNaN(at)) return undefined
  return utc === undefined && hours === undefined ? instantOf(at, timeZone) : at
}

async function writePolls(file: string, polls: readonly number[]): Promise<void> {
  const stream = createWriteStream(file)
  try {
    const opened = once(stream, 'open')
    await opened
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
    `${alerts} alerts, ${polls} polls, at most ${unitsPerDayMax} of ${options.unitsPerDay} units a day`,
    '',
    table(['LAG', 'MEAN', 'P50', 'P95', 'P99', 'MAX'], [row('planned', lag), row('evenly spaced', fixed)]),
    '',
    `The mean delay is ${share} % of that of evenly spaced polls.`,
  ].join('\n')
}
