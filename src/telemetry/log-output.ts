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

  /** False when it was not taken whole. */
  const put = (text: string): boolean => {
    const bytes = Buffer.from(text)
    const deadlineMs = performance.now() + (lost > 0 ? 0 : patienceMs)
    for (let from = 0; from < bytes.length; )
      try {
        from += writeSync(fd, bytes, from)
      } catch (thrown) {
        // A pipe that is full. Whoever reads it has been waited for before, where lines were lost already.
        if (errorCode(thrown) === 'EAGAIN' && performance.now() < deadlineMs)
          Atomics.wait(sleeper, 0, 0, napMs)
        else {
          torn ||= from > 0
          return false
        }
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

/** How long one line may keep the bridge waiting, and how often it looks. */
const patienceMs = 1_000
const napMs = 10
const sleeper = new Int32Array(new SharedArrayBuffer(4))
