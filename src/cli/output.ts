import { errorCode } from '../lib/errors.ts'

/**
 * Makes an output that cannot be written (a disk that is full) one sentence and an end with exit code 1. Whoever stops reading
 * (`| head`, a terminal that is closed) has what was wanted: that is no mistake.
 */
export function watchOutput(end: (exitCode: number) => void): void {
  process.stdout.on('error', (error) => {
    if (['EPIPE', 'EIO'].includes(errorCode(error) ?? '')) return
    process.stderr.write(`The output cannot be written: ${error.message}.\n`)
    end(1)
  })
}

/** Resolves once what was written is on its way, or the trouble with it was told. */
export function outputTold(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
