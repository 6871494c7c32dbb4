import { type DestinationStream, type Logger, pino } from 'pino'
import { PinoPretty as pretty } from 'pino-pretty'
import { errorCode, toError } from '../lib/errors.ts'
import { lineWriter } from './log-output.ts'

export type { Logger }

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/**
 * JSON lines, or lines for people on a terminal. Of an error only its name, code and message are written: ioredis and
 * undici hang arguments, addresses and whole payloads on theirs.
 */
export function createLogger(options: {
  level: LogLevel
  destination?: DestinationStream
  terminal?: boolean
}): Logger {
  const stream = options.terminal
    ? pretty({
        colorize: true,
        translateTime: 'SYS:HH:MM:ss.l',
        ignore: 'pid,hostname',
        singleLine: true,
        sync: true,
      })
    : (options.destination ?? lineWriter(standardOutput))
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  }
  return pino(settings, stream)
}

const standardOutput = 1

export function describeError(thrown: unknown): { name: string; code?: string; message: string } {
  const error = toError(thrown)
  const code = errorCode(thrown)
  return { name: error.name, ...(code === undefined ? {} : { code }), message: error.message }
}
