import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/**
 * A plain file as UTF-8, no more than `bytesMax` of it: a path in a config may name a device without an end, or a pipe that
 * nobody writes to. Throws what `openSync` and `readSync` throw, and errors with the codes `EFBIG` and `ENOTFILE`.
 */
export function readSmallFile(path: string, bytesMax: number): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(file).isFile()) throw failure('ENOTFILE', `${path} is no plain file`)
    return readParts(path, bytesMax, (part) => readSync(file, part, 0, part.length, null))
  } finally {
    closeSync(file)
  }
}

/** What `read` puts into one part after another until it returns 0. Throws an error with the code `EFBIG` beyond `bytesMax`. */
export function readParts(path: string, bytesMax: number, read: (part: Buffer) => number): string {
  const parts: Buffer[] = []
  for (let length = 0, bytes = -1; bytes !== 0; length += bytes) {
    const part = Buffer.allocUnsafe(Math.min(bytesMax + 1 - length, partBytesMax))
    bytes = read(part)
    if (length + bytes > bytesMax) throw failure('EFBIG', `${path} is larger than ${bytesMax} bytes`)
    parts.push(part.subarray(0, bytes))
  }
  return Buffer.concat(parts).toString('utf8')
}

const partBytesMax = 1_048_576

const failure = (code: string, message: string) => Object.assign(new Error(message), { code })
