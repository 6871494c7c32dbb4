import { describeReadError } from '../config/read-error.ts'
import { errorCode, UserError } from '../lib/errors.ts'
import { readSmallFile } from '../lib/small-file.ts'

/** More than the longest answer of the bridge, and firing times of thousands a day for years. */
const fileArgumentMiBMax = 64

/** The text of a file that the command line names; `-` is the standard input. It may be a pipe, or a device without an end. */
export function readFileArgument(file: string): { readonly name: string; readonly text: string } {
  const isInput = file === '-'
  const name = isInput ? 'standard input' : file
  try {
    const text = readSmallFile(isInput ? 0 : file, fileArgumentMiBMax * 1024 * 1024, { flowing: true })
    return { name, text }
  } catch (thrown) {
    const why =
      errorCode(thrown) === 'EFBIG' ? `it has more than ${fileArgumentMiBMax} MiB` : describeReadError(thrown)
    throw new UserError(`${name}: the file cannot be read: ${why}`)
  }
}
