import { readPipeOrFile } from '../../config/file/pipe-file.ts'
import { describeReadError } from '../../config/file/read-error.ts'
import { errorCode, UserError } from '../../lib/errors.ts'

/** More than the longest answer of the bridge, and firing times of thousands a day for years. */
const fileArgumentMiBMax = 64
const bytesMax = fileArgumentMiBMax * 1024 * 1024

/** The text of a file that the command line names; `-` is the standard input. It may be a pipe, or a device without an end. */
export async function readFileArgument(
  file: string,
): Promise<{ readonly name: string; readonly text: string }> {
  const isInput = file === '-'
  const name = isInput ? 'standard input' : file
  try {
    const text = isInput ? await readInput() : readPipeOrFile(file, bytesMax)
    return { name, text }
  } catch (thrown) {
    const why =
      errorCode(thrown) === 'EFBIG' ? `it has more than ${fileArgumentMiBMax} MiB` : describeReadError(thrown)
    throw new UserError(`${name}: the file cannot be read: ${why}`)
  }
}

/**
 * By its stream. Whatever imports `node:process` (the command line does) has made a pipe non-blocking: a read by descriptor
 * fails while the program before it in the pipe has written nothing yet.
 */
async function readInput(): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    length += part.length
    if (length > bytesMax) throw Object.assign(new Error('too large'), { code: 'EFBIG' })
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}
