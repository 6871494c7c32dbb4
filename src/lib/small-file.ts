import { closeSync, openSync, readSync } from 'node:fs'

/**
 * A file as UTF-8, and no more than `bytesMax` of it: a path in a config may name a device without an end. Throws what
 * `openSync` and `readSync` throw, and an error with the code `EFBIG`.
 */
export function readSmallFile(path: string, bytesMax: number): string {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.allocUnsafe(bytesMax + 1)
    let length = 0
    for (let read = -1; read !== 0 && length <= bytesMax; length += read)
      read = readSync(file, bytes, length, bytes.length - length, null)
    if (length > bytesMax)
      throw Object.assign(new Error(`${path} is larger than ${bytesMax} bytes`), { code: 'EFBIG' })
    return bytes.toString('utf8', 0, length)
  } finally {
    closeSync(file)
  }
}
