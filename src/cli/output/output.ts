import { errorCode } from '../../lib/errors.ts'
import { printable, printableLines } from '../../telemetry/printable.ts'

/**
 * All output of a command goes through here. Code that puts text from outside into a line must make it `printable` first,
 * so that it cannot start a new line; control characters that are left are made harmless here.
 */
export function print(text: string): void {
  process.stdout.write(`${besideIsolated(text, printableLines)}\n`)
}

export function printJson(value: unknown): void {
  process.stdout.write(`${printableLines(JSON.stringify(value, null, 2))}\n`)
}

/**
 * What others wrote, made printable for a line of ours. In a terminal its direction ends with it, so that what stands beside it stays
 * where it is; it gets no wider.
 */
export function isolated(text: string): string {
  const safe = printable(text)
  return process.stdout.isTTY && /\P{ASCII}/u.test(safe) ? `\u2068${safe}\u2069` : safe
}

/**
 * A sentence of the bridge, for one line, with what others wrote in it: `words`, where these are known, else each run of letters that read from right to
 * left. Without it a bracket or a number of ours that follows is shown on the other side of it.
 */
export function sentence(text: string, words?: string | null): string {
  if (words && isolated(words) !== printable(words))
    return text
      .split(words)
      .map((part) => sentence(part))
      .join(isolated(words))
  return text
    .split(rightToLeft)
    .map((part, at) => (at % 2 === 0 ? printable(part) : isolated(part)))
    .join('')
}

/** From the first letter of a run to its last one, with the digits between; the signs that our sentences have after it are not of it. */
const rightToLeft =
  /([\p{Script=Arabic}\p{Script=Hebrew}](?:[\p{M}\p{N}\p{Cf} .!%-]*[\p{Script=Arabic}\p{Script=Hebrew}])*)/u

/** `without context: price (too_large)`; empty where nothing was left out. */
export function withoutText(
  skipped: readonly { readonly what: string; readonly why: string }[] = [],
): string {
  const parts = skipped.map(({ what, why }) => `${isolated(what)} (${why})`)
  return parts.length === 0 ? '' : `without context: ${parts.join(', ')}`
}

/** A line with `isolated` texts: all else is made printable. */
export function printableLine(text: string): string {
  return besideIsolated(text, printable)
}

/** In a pipe nothing is isolated. In a terminal, a mark that has no other one, or has one within, is none of ours. */
function besideIsolated(text: string, change: (text: string) => string): string {
  if (!process.stdout.isTTY) return change(text)
  return text
    .split(/\u2068([^\n\u2066-\u2069]*)\u2069/)
    .map((part, at) => (at % 2 === 0 ? change(part) : isolated(part)))
    .join('')
}

export function printError(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`)
}

/**
 * When the output cannot be written (the disk is full), prints one sentence and ends with exit code 1. A reader that
 * stops reading (`| head`, a terminal that is closed) is no failure.
 */
export function watchOutput(end: (exitCode: number) => void): void {
  process.stdout.on('error', (error) => {
    if (['EPIPE', 'EIO'].includes(errorCode(error) ?? '')) return
    process.stderr.write(`The output cannot be written: ${error.message}.\n`)
    end(1)
  })
}

/**
 * Resolves after what was printed has left this process, or its errors were reported: Node.js writes 64 KiB into a pipe at once, and the
 * rest as it is read. Without a limit: a reader such as `less` takes its time.
 */
export async function outputFlushed(): Promise<void> {
  const { stdout } = process
  if (stdout.writableLength > 0) await new Promise<void>((resolve) => stdout.write('', () => resolve()))
  await new Promise((resolve) => setImmediate(resolve))
}
