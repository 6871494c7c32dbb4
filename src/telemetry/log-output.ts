import { writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'
import { errorCode } from '../lib/errors.ts'

/**
 * Where log lines go: at once, so that the last one before a crash is there. What takes no lines (a disk that is full, a
 * reader that is gone or asleep) costs lines, never the bridge; how many were lost is said once lines are taken again.
 */
export function lineWriter(fd: number): DestinationStream {
  let lost = 0
  let torn = false
  let patienceMs = patienceMsMax
  let earnedAtMs = performance.now()

  /** Waits a moment for whoever reads; false when there is no patience left for it. */
  const nap = (): boolean => {
    const startMs = performance.now()
    patienceMs = Math.min(patienceMsMax, patienceMs + (startMs - earnedAtMs) * patienceShare)
    earnedAtMs = startMs
    if (patienceMs < napMs) return false
    Atomics.wait(sleeper, 0, 0, napMs)
    patienceMs -= performance.now() - startMs
    return true
  }

  /** False when it was not taken whole. */
  const put = (text: string): boolean => {
    const bytes = Buffer.from(text)
    for (let from = 0; from < bytes.length; )
      try {
        from += writeSync(fd, bytes, from)
      } catch (thrown) {
        // A pipe that is full. Whoever reads it has been waited for before, where lines were lost already.
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
 * For all lines together, since the whole bridge stands still meanwhile: what a reader that pauses may cost at once, and
 * the share of the time that one who is always slow may cost.
 */
const patienceMsMax = 500
const patienceShare = 0.1
const napMs = 10
const sleeper = new Int32Array(new SharedArrayBuffer(4))
