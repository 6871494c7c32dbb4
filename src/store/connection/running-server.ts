import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import type { EmbeddedPaths } from './embedded-paths.ts'

/**
 * The pid in the server's own file, while that is a server on this directory. After a crash another program may have the
 * number: in a container, where numbers are small and soon used again, one often has. Where that is not known, it counts as
 * ours: two servers would damage their append-only file.
 */
export function runningPid(place: EmbeddedPaths): number | undefined {
  const pid = pidIn(place.pidFile)
  if (pid === undefined || pid === process.pid) return undefined
  const isOurs = existsSync('/proc/self') ? isServerByProc(pid, place.dir) : isServerByPs(pid)
  return isOurs ? pid : undefined
}

function pidIn(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, 'utf8').trim())
    return Number.isSafeInteger(pid) && pid > 1 ? pid : undefined
  } catch {
    return undefined
  }
}

/** By its name and its working directory: a server changes to its directory when it starts. */
function isServerByProc(pid: number, dir: string): boolean {
  try {
    if (!program.test(readFileSync(`/proc/${pid}/comm`, 'utf8').trim())) return false
  } catch {
    return false
  }
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dir)
  } catch {
    // It belongs to another user; or it has ended, and its parent has not read its exit status.
    return existsSync(`/proc/${pid}`) && !hasEnded(pid)
  }
}

/** A process that has ended keeps its number until its parent reads its exit status; process 1 of a container may never do so. */
function hasEnded(pid: number): boolean {
  try {
    return /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return !existsSync(`/proc/${pid}`)
  }
}

const program = /^(redis|valkey|keydb)|-server$/

/** Where there is no /proc (macOS), by its name alone. */
function isServerByPs(pid: number): boolean {
  try {
    const path = execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], {
      encoding: 'utf8',
      timeout: psTimeoutMs,
    })
    return program.test(path.trim().split('/').at(-1) ?? '')
  } catch {
    return false
  }
}

const psTimeoutMs = 5_000
