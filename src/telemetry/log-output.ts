import { writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'
import { errorCode } from '../lib/errors.ts'

/**
 * Writes log lines at once. A full disk, or a reader that has ended or
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

  /** Writes the text. Returns how many of its lines were lost, whole or in part. */
  const put = (text: string): number => {
    const bytes = Buffer.from(text)
    for (let from = 0; from < bytes.length; )
      try {
        from += writeSync(fd, bytes, from)
      } catch (thrown) {
        // The pipe is full: wait for the reader, but only if no line is lost yet; otherwise it was waited for already.
        if (errorCode(thrown) === 'EAGAIN' && lost === 0 && nap()) continue
        torn ||= from > 0 && bytes[from - 1] !== lineBreak
        return bytes.subarray(from).filter((byte) => byte === lineBreak).length
      }
    return 0
  }

  return {
    write(line) {
      if (lost > 0) {
        const notice = { level: 'warn', time: new Date().toISOString(), lost, msg: 'log lines were lost' }
        if (put(`${torn ? '\n' : ''}${JSON.stringify(notice)}\n`) > 0) {
          lost += line.split('\n').length - 1
          return
        }
        lost = 0
        torn = false
      }
      lost = put(line)
    },
  }
}

/**
 * Writes the first line at once, and the others of the same turn of the event loop with one write at its end: a busy
 * bridge writes hundreds in a turn. `flush` writes what is left when the process ends.
 */
export function gathered(stream: DestinationStream): DestinationStream & { flush(): void } {
  let waiting: string | undefined
  const flush = () => {
    const text = waiting
    waiting = undefined
    if (text) stream.write(text)
  }
  return {
    flush,
    write(line) {
      if (waiting === undefined) {
        waiting = ''
        setImmediate(flush)
        stream.write(line)
        return
      }
      waiting += line
      if (waiting.length < gatheredCharsMax) return
      stream.write(waiting)
      waiting = ''
    },
  }
}

const lineBreak = 10
const gatheredCharsMax = 65_536

/**
 * Limits of the waits for a slow reader, over all lines together, since the whole bridge stops during such a wait: at most so
 * many milliseconds at a stretch, and at most this share of the time in the long run.
 */
const patienceMsMax = 500
const patienceShare = 0.1
const napMs = 10
const sleeper = new Int32Array(new SharedArrayBuffer(4))
