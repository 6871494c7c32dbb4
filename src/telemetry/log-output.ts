import { writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'
import { errorCode } from '../lib/errors.ts'

/**
 * Writes log lines at once, so that the last one before a crash is written. A full disk, or a reader that has ended or
 * pauses, loses lines but never stops the bridge; the number of lost lines is logged once writing works again.
 */
export function lineWriter(fd: number): DestinationStream {
  let lost = 0
  let torn = false
  let patienceMs = patienceMsMax
  let earnedAtMs = performance.now()

  /** Waits a moment for the reader; false when the time for such waits is used up. */
  const nap = (): boolean => {
    const startMs = performance.now()
    patienceMs = Math.min(patienceMsMax, patienceMs + (startMs - earnedAtMs) * patienceShare)
    earnedAtMs = startMs
    if (patienceMs < napMs) return false
    Atomics.wait(sleeper, 0, 0, napMs)
    patienceMs -= performance.now() - startMs
    return true
  }

  /** False when not all of it was written. */
  const put = (text: string): boolean => {
    const bytes = Buffer.from(text)
    for (let from = 0; from < bytes.length; )
      try {
        from += writeSync(fd, bytes, from)
      } catch (thrown) {
        // The pipe is full. Where lines were lost already, the reader had its wait before.
        if (errorCode(thrown) === 'EAGAIN' && lost === 0 && nap()) continue
        torn ||= from > 0
        return false
      }
    return true
  }

  return {
    write(line) {
      if (lost > 0) {
        const notice = { level: 'warn', time: new Date().toISOString(), lost, msg: 'log lines were lost' }
        if (!put(`${torn ? '\n' : ''}${JSON.stringify(notice)}\n`)) {
          lost += 1
          return
        }
        lost = 0
        torn = false
      }
      if (!put(line)) lost = 1
    },
  }
}

/**
 * For all lines together, since the whole bridge stops meanwhile: the longest wait for a reader that pauses, and the share
 * of the time to wait for one that is always slow.
 */
const patienceMsMax = 500
const patienceShare = 0.1
const napMs = 10
const sleeper = new Int32Array(new SharedArrayBuffer(4))
