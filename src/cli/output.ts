import { errorCode } from '../lib/errors.ts'
import { printableLines } from '../telemetry/printable.ts'

/**
 * All output of a command goes through here. Code that puts text from outside into a line must make it `printable` first,
 * so that it cannot start a new line; control characters that are left are made harmless here.
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
 * When the output cannot be written (the disk is full), prints one sentence and ends with exit code 1. A reader that
 * stops reading (`| head`, a terminal that is closed) is no failure.
 */
export function watchOutput(end: (exitCode: number) => void): void {
  process.stdout.on('error', (error) => {
    if (['EPIPE', 'EIO'].includes(errorCode(error) ?? '')) return
    process.stderr.write(`The output cannot be written: ${error.message}.\n`)
    end(1)
  })
}

/** Resolves after errors of what was written so far have been reported. */
export function outputFlushed(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
