import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/**
 * A plain file as UTF-8, and no more than `bytesMax` of it. A path in a config may name a device without an end, or a pipe
 * that nobody writes to, whose reader would wait for ever; only a file that is read once, at a start, may be `flowing`.
 * Throws what `openSync` and `readSync` throw, and errors with the codes `EFBIG` and `ENOTFILE`.
 */
export function readSmallFile(path: string, bytesMax: number, { flowing = false } = {}): string {
  // Otherwise opening a pipe waits for its writer.
  const file = openSync(path, constants.O_RDONLY | (flowing ? 0 : constants.O_NONBLOCK))
  try {
    if (!flowing && !fstatSync(file).isFile()) throw failure('ENOTFILE', `${path} is no plain file`)
    const parts: Buffer[] = []
    let length = 0
    for (let read = -1; read !== 0 && length <= bytesMax; length += read) {
      const part = Buffer.allocUnsafe(Math.min(bytesMax + 1 - length, partBytesMax))
      read = readSync(file, part, 0, part.length, null)
      parts.push(part.subarray(0, read))
    }
    if (length > bytesMax) throw failure('EFBIG', `${path} is larger than ${bytesMax} bytes`)
    return Buffer.concat(parts).toString('utf8')
  } finally {
    closeSync(file)
  }
}

const partBytesMax = 1_048_576

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
