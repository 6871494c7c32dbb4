import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { errorCode } from '../lib/errors.ts'
import { readParts } from '../lib/small-file.ts'

/**
 * A file that may be a pipe, such as `/dev/stdin` or `<(sops -d config.yaml)`, as UTF-8: for what is read once, at a start,
 * since it blocks the process. It may be silent for `idleMsMax`. Throws as `readSmallFile` does, and an error with the code
 * `ETIMEDOUT`.
 */
export function readFlowingFile(path: string, bytesMax: number, idleMsMax = defaultIdleMsMax): string {
  // Otherwise opening a pipe waits for its writer, and reading it for what that writes.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    // That of a pipe with a name may still come; one that is open already (/dev/stdin, /dev/fd/63) has had its writer.
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
          throw Object.assign(new Error(`${path} was silent for ${idleMsMax} ms`), { code: 'ETIMEDOUT' })
        Atomics.wait(sleeper, 0, 0, pollMs)
      }
    })
  } finally {
    closeSync(file)
  }
}

/** Undefined where there is nothing yet. */
function readNow(file: number, part: Buffer): number | undefined {
  try {
    return readSync(file, part, 0, part.length, null)
  } catch (thrown) {
    if (errorCode(thrown) === 'EAGAIN') return undefined
    throw thrown
  }
}

/** Whoever writes may have to decrypt it, or to ask for it over a network. */
const defaultIdleMsMax = 30_000
const pollMs = 20
const sleeper = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
