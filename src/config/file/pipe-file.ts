import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { errorCode } from '../../lib/errors.ts'
import { readParts } from '../../lib/small-file.ts'

/**
 * A file or a pipe, such as `/dev/stdin` or `<(sops -d config.yaml)`, as UTF-8. Blocks the process while it waits, so it is only for
 * what is read once, at the start. Throws what `readSmallFile` throws, and an error with the code `ETIMEDOUT` when nothing came for
 * `idleMsMax`.
 */
export function readPipeOrFile(path: string, bytesMax: number, idleMsMax = defaultIdleMsMax): string {
  // Without O_NONBLOCK, opening a pipe waits for its writer, and reading it for data, both without a limit.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    // The writer of a named pipe may still come; a pipe that is open already (/dev/stdin, /dev/fd/63) has or had one.
    let awaitsWriter = fstatSync(file).isFIFO() && !/^\/(dev|proc)\//.test(path)
    return readParts(path, bytesMax, (part) => {
      const endMs = performance.now() + idleMsMax
      for (;;) {
        const bytes = readNow(file, part)
        if (bytes !== undefined && (bytes > 0 || !awaitsWriter)) {
          awaitsWriter = false
          return bytes
        }
        if (performance.now() > endMs)
          throw Object.assign(new Error(`nobody wrote to ${path} for ${idleMsMax} ms`), { code: 'ETIMEDOUT' })
        Atomics.wait(sleeper, 0, 0, pollMs)
      }
    })
  } finally {
    closeSync(file)
  }
}

/** Undefined while there is nothing to read yet. */
function readNow(file: number, part: Buffer): number | undefined {
  try {
    return readSync(file, part, 0, part.length, null)
  } catch (thrown) {
    if (errorCode(thrown) === 'EAGAIN') return undefined
    throw thrown
  }
}

/** The program that writes may have to decrypt the text, or to fetch it over a network. */
const defaultIdleMsMax = 30_000
const pollMs = 20
const sleeper = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
