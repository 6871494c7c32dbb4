import { createHash } from 'node:crypto'
import { accessSync, constants, lstatSync, mkdirSync, statSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { toError, UserError } from '../../lib/errors.ts'

/** The embedded Redis' directory, socket and program, and the lock on its directory. */
export interface EmbeddedPaths {
  readonly dir: string
  readonly socketPath: string
  readonly pidFile: string
}

/** What the kernel takes for the path of a unix socket (108 bytes with the end mark; 104 on macOS and BSD). */
const socketPathBytesMax = process.platform === 'linux' ? 107 : 103

const sqliteBusy = 5

/**
 * Makes the directory. The same `dataDir` gives the same socket, so that a server of an earlier bridge can be found; where
 * its path is too long for a socket, the socket is in `tempDir`, which has to be the same too.
 */
export function embeddedPaths(dataDir: string, tempDir: string = tmpdir()): EmbeddedPaths {
  const dir = resolve(dataDir)
  makeDir(dir)
  const near = join(dir, 'redis.sock')
  const pidFile = join(dir, 'redis.pid')
  if (Buffer.byteLength(near) <= socketPathBytesMax) return { dir, socketPath: near, pidFile }
  const name = `alert-bridge-${createHash('sha256').update(dir).digest('hex').slice(0, 12)}`
  const far = join(tempDir, name, 'redis.sock')
  if (Buffer.byteLength(far) > socketPathBytesMax) {
    throw new UserError(`dataDir ${dir} is too long a path for a socket; use a shorter one`)
  }
  makeDir(join(tempDir, name), `${join(tempDir, name)}, for the socket of dataDir ${dir},`)
  refuseStrangers(join(tempDir, name))
  return { dir, socketPath: far, pidFile }
}

/** The address of the server as `connectRedis` takes it: a path may contain characters with a meaning in an address. */
export function socketUrl({ socketPath }: EmbeddedPaths): string {
  return `unix://${socketPath.split('/').map(encodeURIComponent).join('/')}`
}

/**
 * The absolute path of `REDIS_SERVER_BIN`, else of redis-server or valkey-server from PATH: it is run in another directory.
 * A UserError says what to do without one.
 */
export function findServer(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['REDIS_SERVER_BIN']
  if (named) {
    if (isProgram(named)) return resolve(named)
    throw new UserError(`REDIS_SERVER_BIN names ${named}, which is no program that can be run`)
  }
  const dirs = (env['PATH'] ?? '').split(delimiter).filter((dir) => dir !== '')
  for (const name of ['redis-server', 'valkey-server']) {
    const found = dirs.map((dir) => join(dir, name)).find(isProgram)
    if (found) return resolve(found)
  }
  throw new UserError(
    'redis.url is "embedded", but there is no redis-server or valkey-server in PATH: install one (apt-get install redis-server, brew install redis), or name a Redis in redis.url',
  )
}

/** Another process has the directory. */
export class DirInUseError extends UserError {}

/**
 * Locks `dir` until the returned function is called or the process ends, however it ends: a lock of the kernel on a file,
 * taken through SQLite, the only part of Node that takes such locks. A pid in a file would be wrong after a crash, and in
 * containers. Throws a DirInUseError where another process has it.
 */
export async function lockDir(dir: string): Promise<() => void> {
  const { DatabaseSync } = sqlite()
  const database = new DatabaseSync(join(dir, 'bridge.lock'), { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    const busy = error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy
    if (busy)
      throw new DirInUseError(
        `another alert-bridge is running on ${dir} (a bridge, or an api command that found none); stop it, or give this one a dataDir of its own`,
        { cause: error },
      )
    throw new UserError(`dataDir ${dir} cannot be locked: ${toError(error).message}`, { cause: error })
  }
  return () => {
    if (database.isOpen) database.close()
  }
}

/** Node.js 22 warns on stderr that SQLite is experimental, which tells an operator nothing: no data is kept in it. */
function sqlite() {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}

function makeDir(dir: string, name = `dataDir ${dir}`): void {
  try {
    makeWithParents(dir)
    accessSync(dir, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new UserError(`${name} cannot be written to`, { cause: error })
  }
}

/** Step by step: under /proc the recursive mkdir of Node never ends, and nothing can stop the process then. */
function makeWithParents(dir: string): void {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory()) return
  if (dirname(dir) !== dir) makeWithParents(dirname(dir))
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    // Another bridge that starts at the same time may have been faster.
    if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}

/** In a directory that everybody may write to, another user may have created it first. */
function refuseStrangers(dir: string): void {
  const stat = lstatSync(dir)
  const { uid } = userInfo()
  if (!stat.isDirectory() || (uid >= 0 && stat.uid !== uid) || (stat.mode & 0o077) !== 0) {
    throw new UserError(`${dir} is not a directory of this user alone; remove it, or use a shorter dataDir`)
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === false
  } catch {
    return false
  }
}
