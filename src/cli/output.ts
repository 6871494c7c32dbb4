import { errorCode } from '../lib/errors.ts'
import { printableLines } from '../telemetry/printable.ts'

/**
 * All that a command writes goes through here. Whoever composes a line out of what others wrote makes that `printable`
 * first, so that it cannot begin a line of its own; what slipped through is kept from the terminal here.
 */
export function print(text: string): void {
  process.stdout.write(`${printableLines(text)}\n`)
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2))
}

export function printError(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`)
}

/**
 * Makes an output that cannot be written (a disk that is full) one sentence and an end with exit code 1. Whoever stops
 * reading (`| head`, a terminal that is closed) has what was wanted: that is no mistake.
 */
export function watchOutput(end: (exitCode: number) => void): void {
  process.stdout.on('error', (error) => {
    if (['EPIPE', 'EIO'].includes(errorCode(error) ?? '')) return
    process.stderr.write(`The output cannot be written: ${error.message}.\n`)
    end(1)
  })
}

/** Resolves once what was written is on its way, or the trouble with it was told. */
export function outputFlushed(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
