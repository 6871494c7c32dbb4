import { type DestinationStream, type Logger, pino } from 'pino'
import { errorCode, toError } from '../lib/errors.ts'
import { load } from '../lib/packages.ts'
import type { LogLevel } from './log-level.ts'
import { gathered, lineWriter } from './log-output.ts'
import { printable, printableLines, printableOnceRead } from './printable.ts'

export type { Logger, LogLevel }

/** The child loggers of each logger; in pino each child keeps the level that it was created with. */
const childrenOf = new WeakMap<Logger, Logger[]>()

/** Sets the level of the logger and of its child loggers. */
export function setLogLevel(log: Logger, level: LogLevel): void {
  for (const each of [log, ...(childrenOf.get(log) ?? [])]) each.level = level
}

/**
 * JSON lines, or lines for people on a terminal; neither contains control characters that others wrote. Of an error only
 * its name, code and message are written: ioredis and undici add arguments, addresses and whole payloads to theirs.
 */
export function createLogger(options: {
  level: LogLevel
  destination?: DestinationStream
  terminal?: boolean
}): Logger {
  const stream = options.terminal
    ? forPeople(options.destination)
    : withoutControls(options.destination ?? standardOutput(), printableLines)
  const children: Logger[] = []
  const settings = {
    level: options.level,
    onChild: (child: Logger) => void children.push(child),
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  }
  const log = pino(settings, stream)
  childrenOf.set(log, children)
  return log
}

let output: DestinationStream | undefined

/** One for all loggers, so that only one has to be flushed when the process ends, also by an uncaught error. */
function standardOutput(): DestinationStream {
  if (output !== undefined) return output
  const lines = gathered(lineWriter(standardOutputFd))
  process.on('exit', () => lines.flush())
  output = lines
  return lines
}

const standardOutputFd = 1

/** Lines on a terminal. Messages and fields contain what others wrote: it is read from JSON and printed as it is. */
function forPeople(destination: DestinationStream | undefined): DestinationStream {
  const { PinoPretty: pretty } = load('pino-pretty') as typeof import('pino-pretty')
  const lines = pretty({
    colorize: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname',
    singleLine: true,
    sync: true,
    messageFormat: (log, key) => printable(String(log[key] ?? '')),
    ...(destination && { destination }),
  })
  return withoutControls(lines, printableOnceRead)
}

function withoutControls(stream: DestinationStream, clean: (line: string) => string): DestinationStream {
  return { write: (line) => stream.write(clean(line)) }
}

function describeError(thrown: unknown): { name: string; code?: string; message: string } {
  const error = toError(thrown)
  const code = errorCode(thrown)
  return { name: error.name, ...(code === undefined ? {} : { code }), message: error.message }
}
