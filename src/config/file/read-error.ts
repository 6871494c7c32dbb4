import { errorCode } from '../../lib/errors.ts'

/** Why a file could not be read, without its path: the mistake names the place in the config. */
export function describeReadError(thrown: unknown): string {
  return reasons[errorCode(thrown) ?? ''] ?? 'input/output error'
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'this is a folder, not a file',
  ENOTDIR: 'a part of its path is not a folder',
  ELOOP: 'too many symbolic links',
  EFBIG: 'it is too large',
  ENOTFILE: 'it is no plain file',
  ETIMEDOUT: 'nobody wrote to it for 30 s',
}
