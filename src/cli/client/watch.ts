import { setTimeout as sleep } from 'node:timers/promises'
import { untilSignal } from '../../app/signal.ts'
import { printable } from '../../telemetry/printable.ts'
import { printError } from '../output/output.ts'
import { NoAnswerError } from './daemon.ts'

/** Looks again and again until the person ends it; a bridge that is away for a moment is waited for, and named once. */
export async function watch(look: () => Promise<void>, everyMs: number, signal: AbortSignal): Promise<void> {
  let wasAway = false
  while (!signal.aborted) {
    try {
      await look()
      wasAway = false
    } catch (thrown) {
      if (!(thrown instanceof NoAnswerError)) throw thrown
      if (!wasAway) printError(printable(thrown.message))
      wasAway = true
    }
    await sleep(everyMs, undefined, { signal }).catch(() => {})
  }
}

/** Aborts at Ctrl-C or SIGTERM, and where the reader of the output has left (`| grep -m 1`): nobody would see what comes. */
export function untilStopped(): AbortSignal {
  const stop = new AbortController()
  process.stdout.once('error', () => stop.abort())
  void untilSignal(['SIGTERM', 'SIGINT']).then(() => stop.abort())
  return stop.signal
}

/** Where it writes to a terminal, each look replaces the last one. */
export function clearScreen(stream: NodeJS.WriteStream = process.stdout): void {
  if (stream.isTTY) stream.write('\x1b[H\x1b[2J\x1b[3J')
}
