import { createLogger, type Logger } from '../../src/telemetry/log.ts'

/** A real logger whose lines a test can read: at `debug`, so that nothing escapes a look for secrets. */
export interface CapturedLog {
  readonly log: Logger
  readonly lines: readonly LogLine[]
  /** The lines with this message, oldest first. */
  with(message: string): readonly LogLine[]
  text(): string
}

type LogLine = { readonly level: string; readonly msg: string } & Readonly<Record<string, unknown>>

export function captureLog(): CapturedLog {
  const texts: string[] = []
  const log = createLogger({ level: 'debug', destination: { write: (text) => void texts.push(text) } })
  const lines = () => texts.map((text) => JSON.parse(text) as LogLine)
  return {
    log,
    get lines() {
      return lines()
    },
    with: (message) => lines().filter(({ msg }) => msg === message),
    text: () => texts.join(''),
  }
}
